//! The request body, assembled from bytes: the settings, the cached encoded messages, and the end.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use helix_agents_core::llm::{LlmConfig, LlmRequest, ToolChoice};
use helix_agents_core::message::Message;
use serde::Serialize;
use serde_json::Value;

use super::object::{Object, write_json};
use super::profile::{MaxTokensField, ServerProfile};
use super::{Inner, format, message, settings, tools};

/// A request body, shared by all attempts of one call.
#[derive(Debug)]
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    /// Whether the reply is streamed.
    pub(super) streams: bool,
    conversation: Range<usize>,
}

impl RequestBody {
    /// Writes the body of one call.
    pub(super) fn assemble(server: &Inner, model: &str, request: &LlmRequest<'_>) -> Self {
        let profile = server.profile();
        let encode = |message: &Message, out: &mut Vec<u8>| {
            message::encode(message, profile.empty_content, out);
        };
        let messages: Vec<Cow<'_, [u8]>> = std::iter::once(request.prompt)
            .chain(request.messages)
            .map(|message| message.encoded(profile.message_encoding(), encode))
            .collect();
        let tools = request.tools.encoded(profile.tool_encoding(), |specs, out| {
            tools::encode(specs, profile.strict_tools, out);
        });
        let size: usize = messages.iter().map(|message| message.len() + 1).sum();

        let mut out = Vec::with_capacity(size + tools.len() + 1024);
        let mut object = Object::begin(&mut out);
        object.member("model", model);
        let streams = streams(profile, request);
        prefix(server, request, streams, &mut object);
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
        Self { bytes: out.into(), streams, conversation: start..end }
    }

    /// Returns the part of the body that contains the conversation, for redaction.
    pub(super) fn conversation(&self) -> &[u8] {
        self.bytes.get(self.conversation.clone()).unwrap_or_default()
    }
}

/// Returns `true` if the model may choose among tools.
fn may_choose(request: &LlmRequest<'_>) -> bool {
    !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto
}

fn streams(profile: &ServerProfile, request: &LlmRequest<'_>) -> bool {
    profile.stream && (profile.stream_tool_choice || !may_choose(request))
}

fn prefix(server: &Inner, request: &LlmRequest<'_>, streams: bool, object: &mut Object<'_>) {
    let (config, profile) = (request.config, server.profile());
    let provider = &server.options.name;
    let replaced = |key: &str| settings::options(config, provider).any(|(name, _)| name == key);

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
    if let ToolChoice::Tool(name) = request.tool_choice
        && !request.tools.is_empty()
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
    for (key, value) in settings::options(config, provider) {
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
    let mut optional = Optional { object, replaced };
    optional.member(max_tokens, config.max_output_tokens);
    optional.member("temperature", config.temperature);
    optional.member("top_p", config.top_p);
    optional.member("top_k", config.top_k);
    optional.member("presence_penalty", config.presence_penalty);
    optional.member("frequency_penalty", config.frequency_penalty);
    optional.member("seed", config.seed);
    let stop = Some(&config.stop_sequences).filter(|stop| !stop.is_empty());
    optional.member("stop", stop);
}

struct Optional<'a, 'b> {
    object: &'a mut Object<'b>,
    replaced: &'a dyn Fn(&str) -> bool,
}

impl Optional<'_, '_> {
    fn member<T: Serialize>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value
            && !(self.replaced)(key)
        {
            self.object.member(key, &value);
        }
    }
}
