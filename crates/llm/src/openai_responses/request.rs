//! The request body, assembled from bytes: the settings, the encoded tools and messages.

use std::borrow::Cow;

use helix_agents_core::llm::{Caching, LlmConfig, ThinkingAmount, ThinkingDisplay};
use helix_agents_core::message::{Message, SharedMessage};
use serde_json::Value;

use super::{OpenAiResponses, message, tools};
use crate::call_id;
use crate::json_writer::{Object, optional, write_json};
use crate::reply_data;
use crate::strict::{Subset, strict};
use crate::wire_format::{Call, RequestBody};

/// The cache keys of the encodings.
const MESSAGE_ENCODING: &str = "openai_responses.message";
const REPLY_OF_ANOTHER_PROVIDER_ENCODING: &str = "openai_responses.reply_of_another_provider";
const TOOL_ENCODING: &str = "openai_responses.tools";
const FORMAT_ENCODING: &str = "openai_responses.format";

/// Writes the body of one call.
pub(super) fn assemble(call: &Call<'_>) -> RequestBody {
    let Call { request, model, .. } = *call;
    let messages: Vec<Cow<'_, [u8]>> = reply_data::messages(call)
        .iter()
        .map(|shared| encoded(shared, call))
        // A reply may have no content.
        .filter(|items| !items.is_empty())
        .collect();
    let tools = request.tools.encoded(TOOL_ENCODING, tools::encode);
    let size: usize = messages.iter().map(|items| items.len() + 1).sum();

    let mut out = Vec::with_capacity(size + tools.len() + 2048);
    let mut object = Object::begin(&mut out);
    object.member("model", model);
    settings(call, &mut object);
    if !request.tools.is_empty() {
        object.raw("tools", &tools);
    }
    let prompt = match &**request.prompt {
        Message::System { content } => content.as_str(),
        _ => "",
    };
    let out_prompt = object.value("instructions");
    let start = out_prompt.len();
    write_json(out_prompt, prompt);
    let out_input = object.value("input");
    out_input.push(b'[');
    for (index, items) in messages.iter().enumerate() {
        if index > 0 {
            out_input.push(b',');
        }
        out_input.extend_from_slice(items);
    }
    out_input.push(b']');
    let end = out_input.len();
    object.end();
    RequestBody { bytes: out.into(), streams: true, conversation: start..end }
}

fn encoded<'a>(shared: &'a SharedMessage, call: &Call<'_>) -> Cow<'a, [u8]> {
    if reply_data::is_foreign(shared, call.data_owner, None) {
        return shared.encoded(REPLY_OF_ANOTHER_PROVIDER_ENCODING, |message, out| {
            message::encode(message, false, out);
        });
    }
    shared.encoded(MESSAGE_ENCODING, |message, out| message::encode(message, true, out))
}

fn settings(call: &Call<'_>, object: &mut Object<'_>) {
    let Call { request, .. } = *call;
    let config = request.config;
    let replaced = |key: &str| call.option::<OpenAiResponses>(key).is_some();
    object.raw("stream", b"true");
    // The server keeps nothing. Reasoning is sent back in encrypted form.
    if !replaced("store") {
        object.raw("store", b"false");
    }
    // Models without reasoning reject the member.
    let reasons = call.capabilities.is_none_or(|known| !known.efforts.is_empty());
    if reasons && !replaced("include") {
        object.raw("include", b"[\"reasoning.encrypted_content\"]");
    }
    if config.caching != Caching::Off && !replaced("prompt_cache_key") {
        object.member("prompt_cache_key", &*call_id::short(request.session.as_str()));
    }
    sampling(config, &replaced, object);
    if let Some(schema) = request.output_schema
        && !replaced("text")
    {
        object.raw("text", &schema.encoded(FORMAT_ENCODING, encode_format));
    }
    if let Some(thinking) = config.thinking
        && !replaced("reasoning")
    {
        let mut reasoning = Object::begin(object.value("reasoning"));
        match thinking.amount {
            ThinkingAmount::Effort(effort) => reasoning.member("effort", effort.as_str()),
            _ => reasoning.member("effort", "none"),
        }
        if thinking.display == ThinkingDisplay::Summarized {
            reasoning.member("summary", "auto");
        }
        reasoning.end();
    }
    if let Some(name) = call.forced_tool()
        && !replaced("tool_choice")
    {
        let mut choice = Object::begin(object.value("tool_choice"));
        choice.member("type", "function");
        choice.member("name", name);
        choice.end();
    }
    for (key, value) in call.options::<OpenAiResponses>() {
        object.member(key, value);
    }
}

fn sampling(config: &LlmConfig, replaced: &dyn Fn(&str) -> bool, object: &mut Object<'_>) {
    optional(object, replaced, "max_output_tokens", config.max_output_tokens);
    optional(object, replaced, "temperature", config.temperature);
    optional(object, replaced, "top_p", config.top_p);
}

/// Writes the text settings that request an output of a schema.
fn encode_format(schema: &Value, out: &mut Vec<u8>) {
    let narrowed = strict(schema, Subset::OpenAi);
    let mut text = Object::begin(out);
    let mut format = Object::begin(text.value("format"));
    format.member("type", "json_schema");
    format.member("name", "output");
    write_json(format.value("schema"), narrowed.as_ref().unwrap_or(schema));
    format.member("strict", &narrowed.is_some());
    format.end();
    text.end();
}
