//! Replies of OpenAI's Responses API.

use anyhow::Result;

use super::{Call, Encoding, escaped, named_event};
use crate::serve::script::Marks;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

/// The encoding of Responses.
pub(super) struct Responses;

impl Encoding for Responses {
    fn marks(&self) -> Marks {
        Marks { result: "\"function_call_output\"", content: "\"output\":\"" }
    }

    fn call(&self, call: &Call, out: &mut Vec<u8>) -> Result<()> {
        let arguments = escaped(&call.arguments);
        let done = call_item(call, &arguments, "completed");
        start(out)?;
        item("added", &call_item(call, "", "in_progress"), out)?;
        let place = format!("\"item_id\":\"fc_{ID}\",\"output_index\":0");
        let delta = format!("{place},\"delta\":\"{arguments}\",\"obfuscation\":\"abcdef\"");
        event("response.function_call_arguments.delta", &delta, out)?;
        let whole = format!("{place},\"arguments\":\"{arguments}\"");
        event("response.function_call_arguments.done", &whole, out)?;
        item("done", &done, out)?;
        end(&done, out)
    }

    fn text_start(&self, out: &mut Vec<u8>) -> Result<()> {
        start(out)?;
        item("added", &message("", "in_progress"), out)?;
        let part = format!("{},\"part\":{}", place(), part(""));
        event("response.content_part.added", &part, out)
    }

    fn text_piece(&self, piece: &str, out: &mut Vec<u8>) -> Result<()> {
        let piece = escaped(piece);
        let delta =
            format!("{},\"delta\":\"{piece}\",\"logprobs\":[],\"obfuscation\":\"abcdef\"", place());
        event("response.output_text.delta", &delta, out)
    }

    fn text_end(&self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        let text = escaped(text);
        let whole = format!("{},\"text\":\"{text}\",\"logprobs\":[]", place());
        event("response.output_text.done", &whole, out)?;
        let part = part(&text);
        let done = format!("{},\"part\":{part}", place());
        event("response.content_part.done", &done, out)?;
        let message = message(&part, "completed");
        item("done", &message, out)?;
        end(&message, out)
    }
}

/// Returns the members that name the place of a text.
fn place() -> String {
    format!("\"item_id\":\"msg_{ID}\",\"output_index\":0,\"content_index\":0")
}

fn part(text: &str) -> String {
    format!("{{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"{text}\"}}")
}

fn message(part: &str, status: &str) -> String {
    format!(
        "{{\"id\":\"msg_{ID}\",\"type\":\"message\",\"status\":\"{status}\",\"content\":[{part}],\"role\":\"assistant\"}}"
    )
}

fn call_item(call: &Call, arguments: &str, status: &str) -> String {
    let Call { id, tool, .. } = call;
    format!(
        "{{\"id\":\"fc_{ID}\",\"type\":\"function_call\",\"status\":\"{status}\",\"arguments\":\"{arguments}\",\"call_id\":\"{id}\",\"name\":\"{tool}\"}}"
    )
}

fn item(what: &str, item: &str, out: &mut Vec<u8>) -> Result<()> {
    let members = format!("\"output_index\":0,\"item\":{item}");
    event(&format!("response.output_item.{what}"), &members, out)
}

fn start(out: &mut Vec<u8>) -> Result<()> {
    let response = response("in_progress", "", "null");
    event("response.created", &response, out)?;
    event("response.in_progress", &response, out)
}

fn end(item: &str, out: &mut Vec<u8>) -> Result<()> {
    let usage = "{\"input_tokens\":100,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":20,\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":120}";
    event("response.completed", &response("completed", item, usage), out)
}

fn response(status: &str, output: &str, usage: &str) -> String {
    format!(
        "\"response\":{{\"id\":\"resp_{ID}\",\"object\":\"response\",\"created_at\":1735689600,\"status\":\"{status}\",\"error\":null,\"incomplete_details\":null,\"model\":\"bench\",\"output\":[{output}],\"parallel_tool_calls\":true,\"store\":false,\"usage\":{usage}}}"
    )
}

fn event(kind: &str, members: &str, out: &mut Vec<u8>) -> Result<()> {
    named_event(kind, &format!("{{\"type\":\"{kind}\",\"sequence_number\":10,{members}}}"), out)
}
