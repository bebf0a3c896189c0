//! The request body, assembled from bytes: the settings, the encoded tools and messages.

use std::borrow::Cow;

use helix_agents_core::llm::{ThinkingAmount, ThinkingDisplay};
use helix_agents_core::message::SharedMessage;
use serde_json::Value;

use super::message::Data;
use super::{GeminiGenerate, message, tools};
use crate::conversation::{self, EncodedMessage};
use crate::json_writer::{Object, write_json};
use crate::reply_data;
use crate::wire_format::{Call, RequestBody};

/// The cache keys of the encodings.
const MESSAGE_ENCODING: &str = "gemini_generate.message";
const REPLY_OF_ANOTHER_PROVIDER_ENCODING: &str = "gemini_generate.reply_of_another_provider";
const UNSIGNED_ENCODING: &str = "gemini_generate.unsigned_reply";
const TOOL_ENCODING: &str = "gemini_generate.tools";
const FORMAT_ENCODING: &str = "gemini_generate.format";

/// The option that names cached content.
pub(super) const CACHED_CONTENT: &str = "cachedContent";

/// Writes the body of one call.
pub(super) fn assemble(call: &Call<'_>) -> RequestBody {
    let request = call.request;
    let needs_signatures = needs_signatures(call.model);
    let encoded = |shared| encoded(shared, needs_signatures, call);
    let prompt = encoded(request.prompt);
    let messages: Vec<EncodedMessage<'_>> = reply_data::messages(call)
        .iter()
        .map(|shared| (message::role(shared), encoded(shared)))
        // A reply may have no content, and cannot be sent back then.
        .filter(|(_, parts)| !parts.is_empty())
        .collect();
    let tools = request.tools.encoded(TOOL_ENCODING, tools::encode);
    let size: usize = messages.iter().map(|(_, parts)| parts.len() + 32).sum();

    let mut out = Vec::with_capacity(size + prompt.len() + tools.len() + 1024);
    let mut object = Object::begin(&mut out);
    settings(call, &mut object);
    // Cached content contains the prompt and the tools, and the API rejects a request that repeats them.
    let is_cached = call.option::<GeminiGenerate>(CACHED_CONTENT).is_some();
    if !request.tools.is_empty() && !is_cached {
        object.raw("tools", &tools);
    }
    let mut start = None;
    if !is_cached {
        let out_prompt = object.value("systemInstruction");
        start = Some(out_prompt.len());
        out_prompt.extend_from_slice(b"{\"parts\":[");
        out_prompt.extend_from_slice(&prompt);
        out_prompt.extend_from_slice(b"]}");
    }
    let contents = object.value("contents");
    let start = start.unwrap_or(contents.len());
    conversation::write(&messages, "parts", |_, _| {}, contents);
    let end = contents.len();
    object.end();
    RequestBody { bytes: out.into(), streams: true, conversation: start..end }
}

fn encoded<'a>(
    shared: &'a SharedMessage,
    needs_signatures: bool,
    call: &Call<'_>,
) -> Cow<'a, [u8]> {
    let is_foreign = reply_data::is_foreign(shared, call.data_owner, None);
    let (encoding, data) = if needs_signatures && message::is_unsigned(shared, is_foreign) {
        (UNSIGNED_ENCODING, Data::Unsigned)
    } else if is_foreign {
        (REPLY_OF_ANOTHER_PROVIDER_ENCODING, Data::Nothing)
    } else {
        (MESSAGE_ENCODING, Data::Own)
    };
    shared.encoded(encoding, |message, out| message::encode(message, data, out))
}

/// Returns `true` for models that reject calls without signatures.
fn needs_signatures(model: &str) -> bool {
    model.contains("gemini") && !["gemini-1", "gemini-2"].iter().any(|old| model.contains(old))
}

fn settings(call: &Call<'_>, object: &mut Object<'_>) {
    let request = call.request;
    let config = request.config;
    let replaced = |key: &str| call.option::<GeminiGenerate>(key).is_some();
    if !replaced("generationConfig") {
        let mut generation = Object::begin(object.value("generationConfig"));
        generation.optional("maxOutputTokens", config.max_output_tokens);
        generation.optional("temperature", config.temperature);
        generation.optional("topP", config.top_p);
        generation.optional("topK", config.top_k);
        generation.optional("seed", config.seed);
        generation.optional("presencePenalty", config.presence_penalty);
        generation.optional("frequencyPenalty", config.frequency_penalty);
        if let Some(thinking) = config.thinking {
            let mut out = Object::begin(generation.value("thinkingConfig"));
            match thinking.amount {
                ThinkingAmount::Effort(effort) => out.member("thinkingLevel", effort.as_str()),
                ThinkingAmount::Budget(tokens) => out.member("thinkingBudget", &tokens),
                _ => out.member("thinkingBudget", &0),
            }
            match thinking.display {
                ThinkingDisplay::Summarized => out.member("includeThoughts", &true),
                ThinkingDisplay::Omitted => out.member("includeThoughts", &false),
                _ => {}
            }
            out.end();
        }
        let stop = Some(&config.stop_sequences).filter(|stop| !stop.is_empty());
        generation.optional("stopSequences", stop);
        if let Some(schema) = request.output_schema {
            generation.member("responseMimeType", "application/json");
            generation.raw("responseJsonSchema", &schema.encoded(FORMAT_ENCODING, encode_schema));
        }
        generation.end();
    }
    if let Some(name) = call.forced_tool()
        && !replaced("toolConfig")
        && !replaced(CACHED_CONTENT)
    {
        let mut config = Object::begin(object.value("toolConfig"));
        let mut calling = Object::begin(config.value("functionCallingConfig"));
        calling.member("mode", "ANY");
        calling.member("allowedFunctionNames", &[name]);
        calling.end();
        config.end();
    }
    for (key, value) in call.options::<GeminiGenerate>() {
        object.member(key, value);
    }
}

fn encode_schema(schema: &Value, out: &mut Vec<u8>) {
    write_json(out, schema);
}
