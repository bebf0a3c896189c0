//! The request body, assembled from bytes: the encoded messages and tools, and the settings.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use helix_agents_core::llm::Caching;
use helix_agents_core::message::{Message, SharedMessage};
use helix_agents_core::tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::{BedrockConverse, message};
use crate::claude_reasoning;
use crate::conversation::{self, EncodedMessage};
use crate::json_writer::Object;
use crate::reply_data;
use crate::wire_format::{Call, RequestBody};

/// The cache keys of the encodings.
const MESSAGE_ENCODING: &str = "bedrock_converse.message";
const REPLY_OF_ANOTHER_MODEL_ENCODING: &str = "bedrock_converse.reply_of_another_model";
const TOOL_ENCODING: &str = "bedrock_converse.tools";

/// The option with the settings of the model's vendor.
const VENDOR_FIELDS: &str = "additionalModelRequestFields";

/// A block that ends the part of the request that is cached.
const CACHE_POINT: &[u8] = b",{\"cachePoint\":{\"type\":\"default\"}}";

/// Writes the body of one call.
pub(super) fn assemble(call: &Call<'_>) -> RequestBody {
    let request = call.request;
    let prompt = encoded(request.prompt, call);
    let messages: Vec<EncodedMessage<'_>> = reply_data::messages(call)
        .iter()
        .map(|shared| (message::role(shared), encoded(shared, call)))
        // A reply may have no content, and cannot be sent back then.
        .filter(|(_, blocks)| !blocks.is_empty())
        .collect();
    let tools = if request.tools.is_empty() {
        called_tools(request.messages)
    } else {
        request.tools.encoded(TOOL_ENCODING, encode_tools)
    };
    let size: usize = messages.iter().map(|(_, blocks)| blocks.len() + 32).sum();
    // A cache point behind reasoning is rejected, so the conversation has none.
    let is_cached = is_claude_or_nova(call.model) && request.config.caching != Caching::Off;
    let cache_point = if is_cached { CACHE_POINT } else { b"" };

    let mut out = Vec::with_capacity(size + prompt.len() + tools.len() + 1024);
    let mut object = Object::begin(&mut out);
    let fields = vendor_fields(call);
    settings(call, fields.as_ref(), &mut object);
    if !tools.is_empty() {
        let mut config = Object::begin(object.value("toolConfig"));
        let list = config.value("tools");
        list.push(b'[');
        list.extend_from_slice(&tools);
        // Nova accepts cache points only elsewhere.
        if call.model.contains("anthropic.claude") {
            list.extend_from_slice(cache_point);
        }
        list.push(b']');
        let thinking = fields.as_ref().and_then(|fields| fields.get("thinking"));
        let can_force = is_claude_or_nova(call.model)
            && !thinking.is_some_and(claude_reasoning::excludes_forced_tool);
        if let Some(name) = call.forced_tool().filter(|_| can_force) {
            let mut choice = Object::begin(config.value("toolChoice"));
            let mut tool = Object::begin(choice.value("tool"));
            tool.member("name", name);
            tool.end();
            choice.end();
        }
        config.end();
    }
    let out_prompt = object.value("system");
    let start = out_prompt.len();
    out_prompt.push(b'[');
    if !prompt.is_empty() {
        out_prompt.extend_from_slice(&prompt);
        out_prompt.extend_from_slice(cache_point);
    }
    out_prompt.push(b']');
    let out_messages = object.value("messages");
    conversation::write(&messages, "content", |_, _| {}, out_messages);
    let end = out_messages.len();
    object.end();
    RequestBody { bytes: out.into(), streams: true, conversation: start..end }
}

/// Returns `true` for the models that accept cache points and forced tools.
fn is_claude_or_nova(model: &str) -> bool {
    ["anthropic.claude", "amazon.nova"].iter().any(|name| model.contains(name))
}

fn encoded<'a>(shared: &'a SharedMessage, call: &Call<'_>) -> Cow<'a, [u8]> {
    // Reasoning is signed for its model, and the API rejects the signatures of other models.
    if reply_data::is_foreign(shared, call.data_owner, Some(call.model)) {
        return shared.encoded(REPLY_OF_ANOTHER_MODEL_ENCODING, |message, out| {
            message::encode(message, false, out);
        });
    }
    shared.encoded(MESSAGE_ENCODING, |message, out| message::encode(message, true, out))
}

fn settings(call: &Call<'_>, fields: Option<&Value>, object: &mut Object<'_>) {
    let config = call.request.config;
    let replaced = |key: &str| call.option::<BedrockConverse>(key).is_some();
    if !replaced("inferenceConfig") {
        let mut inference = Object::begin(object.value("inferenceConfig"));
        if let Some(limit) = config.max_output_tokens {
            inference.member("maxTokens", &limit);
        }
        if let Some(temperature) = config.temperature {
            inference.member("temperature", &temperature);
        }
        if let Some(threshold) = config.top_p {
            inference.member("topP", &threshold);
        }
        if !config.stop_sequences.is_empty() {
            inference.member("stopSequences", &config.stop_sequences);
        }
        inference.end();
    }
    for (key, value) in call.options::<BedrockConverse>() {
        if key != VENDOR_FIELDS {
            object.member(key, value);
        }
    }
    object.optional(VENDOR_FIELDS, fields);
}

/// Returns the settings of the model's vendor, which the API passes on.
fn vendor_fields(call: &Call<'_>) -> Option<Value> {
    let own = call.option::<BedrockConverse>(VENDOR_FIELDS).cloned();
    if !claude_reasoning::contains_bound(call, Some(call.model)) {
        return own;
    }
    let mut fields = match own {
        None => Map::new(),
        Some(Value::Object(fields)) => fields,
        own => return own,
    };
    let thinking = claude_reasoning::with_block_binding(fields.remove("thinking"));
    if claude_reasoning::needs_beta(&thinking)
        && let Value::Array(features) =
            fields.entry("anthropic_beta").or_insert_with(|| Value::Array(Vec::new()))
        && !features.iter().any(|feature| feature == claude_reasoning::BETA)
    {
        features.push(claude_reasoning::BETA.into());
    }
    fields.insert("thinking".to_owned(), thinking);
    Some(Value::Object(fields))
}

/// Returns the tools that were called, for a request without tools: the API rejects calls without a list of tools.
fn called_tools(messages: &[SharedMessage]) -> Cow<'static, [u8]> {
    let calls = messages.iter().flat_map(|shared| match &**shared {
        Message::Assistant(reply) => reply.tool_calls.as_slice(),
        _ => &[],
    });
    let names: BTreeSet<&Arc<str>> = calls.map(|call| &call.name).collect();
    let spec = |name: &Arc<str>| ToolSpec::new(Arc::clone(name), "", json!({"type": "object"}));
    let specs: Vec<ToolSpec> = names.into_iter().map(spec).collect();
    let mut out = Vec::new();
    encode_tools(&specs, &mut out);
    Cow::Owned(out)
}

/// Writes the tools, separated by commas.
fn encode_tools(specs: &[ToolSpec], out: &mut Vec<u8>) {
    for (index, spec) in specs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut tool = Object::begin(out);
        let mut definition = Object::begin(tool.value("toolSpec"));
        definition.member("name", &*spec.name);
        // The API rejects an empty description.
        if !spec.description.is_empty() {
            definition.member("description", &*spec.description);
        }
        let mut schema = Object::begin(definition.value("inputSchema"));
        schema.raw("json", spec.input_schema.text().as_bytes());
        schema.end();
        definition.end();
        tool.end();
    }
}
