//! The request body, assembled from bytes: the settings, the cached encoded messages, and the end.

use std::borrow::Cow;

use helix_agents_core::llm::{LlmConfig, LlmRequest, ThinkingAmount, ToolChoice};
use helix_agents_core::message::SharedMessage;
use serde_json::Value;

use super::profile::{MaxTokensField, ServerProfile};
use super::{OpenAiChat, format, message, tools};
use crate::json_writer::{Object, optional, write_json};
use crate::reply_data;
use crate::wire_format::{Call, RequestBody};

/// Writes the body of one call.
pub(super) fn assemble(profile: &ServerProfile, call: &Call<'_>) -> RequestBody {
    let Call { request, model, .. } = *call;
    let messages: Vec<Cow<'_, [u8]>> = std::iter::once(request.prompt)
        .chain(reply_data::messages(call))
        .map(|shared| encoded(shared, profile, call))
        .collect();
    let tools = request.tools.encoded(profile.tool_encoding(), |specs, out| {
        tools::encode(specs, profile.strict_tools, out);
    });
    let size: usize = messages.iter().map(|message| message.len() + 1).sum();

    let mut out = Vec::with_capacity(size + tools.len() + 1024);
    let mut object = Object::begin(&mut out);
    object.member("model", model);
    let streams = streams(profile, request);
    prefix(profile, call, streams, &mut object);
    if !request.tools.is_empty() {
        object.raw("tools", &tools);
    }
    let out_messages = object.value("messages");
    let start = out_messages.len();
    out_messages.push(b'[');
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            out_messages.push(b',');
        }
        out_messages.extend_from_slice(message);
    }
    out_messages.push(b']');
    let end = out_messages.len();
    object.end();
    RequestBody { bytes: out.into(), streams, conversation: start..end }
}

fn encoded<'a>(
    shared: &'a SharedMessage,
    profile: &ServerProfile,
    call: &Call<'_>,
) -> Cow<'a, [u8]> {
    let keeps_data = !reply_data::is_foreign(shared, call.data_owner, Some(call.model));
    shared.encoded(profile.message_encoding(keeps_data), |message, out| {
        message::encode(message, profile, keeps_data, out);
    })
}

/// Returns `true` if the model may choose among tools.
fn may_choose(request: &LlmRequest<'_>) -> bool {
    !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto
}

fn streams(profile: &ServerProfile, request: &LlmRequest<'_>) -> bool {
    profile.stream && (profile.stream_tool_choice || !may_choose(request))
}

fn prefix(profile: &ServerProfile, call: &Call<'_>, streams: bool, object: &mut Object<'_>) {
    let Call { request, .. } = *call;
    let config = request.config;
    let replaced = |key: &str| call.option::<OpenAiChat<'_>>(key).is_some();

    object.member("stream", &streams);
    if streams && profile.stream_usage && !replaced("stream_options") {
        object.raw("stream_options", b"{\"include_usage\":true}");
    }
    sampling(config, profile.max_tokens_field, &replaced, object);
    if let Some(schema) = request.output_schema
        && !replaced("response_format")
    {
        let encode = |schema: &Value, out: &mut Vec<u8>| {
            format::encode(schema, profile.output_format, out);
        };
        object.raw("response_format", &schema.encoded(profile.format_encoding(), encode));
    }
    if let Some(thinking) = config.thinking
        && !replaced("reasoning_effort")
    {
        let effort = match thinking.amount {
            ThinkingAmount::Effort(effort) => effort.as_str(),
            _ => "none",
        };
        object.member("reasoning_effort", effort);
    }
    if let Some(name) = call.forced_tool()
        && !replaced("tool_choice")
    {
        let out = object.value("tool_choice");
        out.extend_from_slice(b"{\"type\":\"function\",\"function\":{\"name\":");
        write_json(out, name);
        out.extend_from_slice(b"}}");
    }
    if profile.explicit_tool_choice && may_choose(request) && !replaced("tool_choice") {
        object.member("tool_choice", "auto");
    }
    for (key, value) in call.options::<OpenAiChat<'_>>() {
        object.member(key, value);
    }
}

/// Writes the sampling settings, except those that provider options replace.
fn sampling(
    config: &LlmConfig,
    max_tokens: MaxTokensField,
    replaced: &dyn Fn(&str) -> bool,
    object: &mut Object<'_>,
) {
    let max_tokens = match max_tokens {
        MaxTokensField::MaxTokens => "max_tokens",
        MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
    };
    optional(object, replaced, max_tokens, config.max_output_tokens);
    optional(object, replaced, "temperature", config.temperature);
    optional(object, replaced, "top_p", config.top_p);
    optional(object, replaced, "top_k", config.top_k);
    optional(object, replaced, "presence_penalty", config.presence_penalty);
    optional(object, replaced, "frequency_penalty", config.frequency_penalty);
    optional(object, replaced, "seed", config.seed);
    let stop = Some(&config.stop_sequences).filter(|stop| !stop.is_empty());
    optional(object, replaced, "stop", stop);
}
