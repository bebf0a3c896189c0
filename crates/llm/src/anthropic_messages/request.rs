//! The request body, assembled from bytes: the settings, the encoded tools and messages, and the cache breakpoints.
//!
//! Anthropic caches the beginning of a request up to each breakpoint. Three of the four that a request may have are
//! used: behind the tools, behind the system prompt, and behind the last message to the model.

use std::borrow::Cow;

use helix_agents_core::llm::{Caching, ThinkingAmount};
use helix_agents_core::message::{Message, SharedMessage};
use helix_agents_core::schema::Schema;
use serde_json::Value;

use super::message::Extent;
use super::{AnthropicMessages, container, message, thinking, tools};
use crate::claude_reasoning;
use crate::conversation::{self, EncodedMessage};
use crate::json_writer::{Object, optional, write_json};
use crate::reply_data;
use crate::server::Hosting;
use crate::strict::{Subset, strict};
use crate::wire_format::{Call, RequestBody};

/// The maximum length of a reply in tokens if the settings name none. The API requires one.
pub(super) const MAX_TOKENS: u32 = 16_000;

/// The cache keys of the encodings.
const MESSAGE_ENCODING: &str = "anthropic_messages.message";
const CLOSED_REPLY_ENCODING: &str = "anthropic_messages.closed_reply";
const REPLY_OF_ANOTHER_PROVIDER_ENCODING: &str = "anthropic_messages.reply_of_another_provider";
const TOOL_ENCODING: &str = "anthropic_messages.tools";
const STRICT_TOOL_ENCODING: &str = "anthropic_messages.strict_tools";
const FORMAT_ENCODING: &str = "anthropic_messages.format";

/// The version of the API on Vertex AI.
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// Returns the member that makes a block a cache breakpoint.
const fn breakpoint(caching: Caching) -> &'static [u8] {
    match caching {
        Caching::Off => b"",
        Caching::OneHour => b",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}",
        _ => b",\"cache_control\":{\"type\":\"ephemeral\"}",
    }
}

/// Writes the body of one call.
pub(super) fn assemble(call: &Call<'_>) -> RequestBody {
    let Call { request, model, .. } = *call;
    let breakpoint = breakpoint(request.config.caching);
    let prompt = encoded(request.prompt, None, call);
    let sent = reply_data::messages(call);
    let following = sent.iter().skip(1).map(|shared| &**shared).map(Some).chain([None]);
    let messages: Vec<EncodedMessage<'_>> = sent
        .iter()
        .zip(following)
        .map(|(shared, next)| (message::role(shared), encoded(shared, next, call)))
        // A reply may have no content, and cannot be sent back then.
        .filter(|(_, blocks)| !blocks.is_empty())
        .collect();
    let is_strict = call.capabilities.is_some_and(|known| known.strict_tools);
    let tool_encoding = if is_strict { STRICT_TOOL_ENCODING } else { TOOL_ENCODING };
    let tools = request.tools.encoded(tool_encoding, |specs, out| {
        tools::encode(specs, is_strict, out);
    });
    let size: usize = messages.iter().map(|(_, blocks)| blocks.len() + 32).sum();

    let mut out = Vec::with_capacity(size + prompt.len() + tools.len() + 1024);
    let mut object = Object::begin(&mut out);
    match call.hosting {
        Hosting::VertexRawPredict => object.member("anthropic_version", VERTEX_VERSION),
        _ => object.member("model", model),
    }
    settings(call, &mut object);
    if !request.tools.is_empty() {
        list(&tools, breakpoint, object.value("tools"));
    }
    let out_prompt = object.value("system");
    let start = out_prompt.len();
    list(&prompt, breakpoint, out_prompt);
    let out_messages = object.value("messages");
    // A paused reply stays as it is. The request before it had the same breakpoint.
    let last = messages.iter().rposition(|(role, _)| *role == "user");
    let end = |index: usize, out: &mut Vec<u8>| {
        if Some(index) == last {
            add_breakpoint(breakpoint, out);
        }
    };
    conversation::write(&messages, "content", end, out_messages);
    let end = out_messages.len();
    object.end();
    RequestBody { bytes: out.into(), streams: true, conversation: start..end }
}

/// Encodes a message that precedes `next`.
fn encoded<'a>(
    shared: &'a SharedMessage,
    next: Option<&Message>,
    call: &Call<'_>,
) -> Cow<'a, [u8]> {
    let (encoding, extent) = if reply_data::is_foreign(shared, call.data_owner, None) {
        (REPLY_OF_ANOTHER_PROVIDER_ENCODING, Extent::WithoutData)
    } else if !message::is_continued(shared, next) && message::is_open(shared) {
        (CLOSED_REPLY_ENCODING, Extent::Closed)
    } else {
        (MESSAGE_ENCODING, Extent::Whole)
    };
    shared.encoded(encoding, |message, out| message::encode(message, extent, out))
}

/// Writes a list of blocks whose last one is a breakpoint.
fn list(blocks: &[u8], breakpoint: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    out.extend_from_slice(blocks);
    add_breakpoint(breakpoint, out);
    out.push(b']');
}

/// Makes the block at the end of the buffer a breakpoint.
fn add_breakpoint(breakpoint: &[u8], out: &mut Vec<u8>) {
    if out.pop_if(|last| *last == b'}').is_some() {
        out.extend_from_slice(breakpoint);
        out.push(b'}');
    }
}

fn settings(call: &Call<'_>, object: &mut Object<'_>) {
    let Call { request, .. } = *call;
    let config = request.config;
    let replaced = |key: &str| call.option::<AnthropicMessages>(key).is_some();
    object.raw("stream", b"true");
    if !replaced("max_tokens") {
        object.member("max_tokens", &config.max_output_tokens.unwrap_or(MAX_TOKENS));
    }
    optional(object, &replaced, "temperature", config.temperature);
    optional(object, &replaced, "top_p", config.top_p);
    optional(object, &replaced, "top_k", config.top_k);
    let stop = Some(&config.stop_sequences).filter(|stop| !stop.is_empty());
    optional(object, &replaced, "stop_sequences", stop);
    let thinking = thinking::settings(call);
    object.optional(thinking::MEMBER, thinking.as_ref());
    object.optional(container::MEMBER, container::settings(call));
    output_config(call, &replaced, object);
    if let Some(name) = call.forced_tool()
        && !replaced("tool_choice")
        && !thinking.as_ref().is_some_and(claude_reasoning::excludes_forced_tool)
    {
        let mut choice = Object::begin(object.value("tool_choice"));
        choice.member("type", "tool");
        choice.member("name", name);
        choice.end();
    }
    for (key, value) in call.options::<AnthropicMessages>() {
        if ![thinking::MEMBER, container::MEMBER].contains(&key.as_str()) {
            object.member(key, value);
        }
    }
}

/// Writes the effort and the format of the output.
fn output_config(call: &Call<'_>, replaced: &dyn Fn(&str) -> bool, object: &mut Object<'_>) {
    let effort = match call.request.config.thinking.map(|thinking| thinking.amount) {
        Some(ThinkingAmount::Effort(effort)) => Some(effort.as_str()),
        _ => None,
    };
    let schema = call.request.output_schema;
    if (effort.is_none() && schema.is_none()) || replaced("output_config") {
        return;
    }
    let mut out = Object::begin(object.value("output_config"));
    if let Some(effort) = effort {
        out.member("effort", effort);
    }
    if let Some(schema) = schema {
        let mut format = Object::begin(out.value("format"));
        format.member("type", "json_schema");
        format.raw("schema", &schema.encoded(FORMAT_ENCODING, encode_schema));
        format.end();
    }
    out.end();
}

/// Returns `true` if the model can be constrained to the schema.
pub(super) fn is_supported(schema: &Schema) -> bool {
    !schema.encoded(FORMAT_ENCODING, encode_schema).is_empty()
}

/// Writes the schema in Anthropic's subset, or nothing if it cannot be converted.
fn encode_schema(schema: &Value, out: &mut Vec<u8>) {
    if let Some(schema) = strict(schema, Subset::Anthropic) {
        write_json(out, &schema);
    }
}
