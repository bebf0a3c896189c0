//! The encoding of replies.

use std::io::Write as _;

use anyhow::Result;

use super::script::{Say, call_id};
use crate::job::Ending;

const ENVELOPE: &str =
    "\"id\":\"chatcmpl-0123456789abcdefghijklmnopqr\",\"created\":1735689600,\"model\":\"bench\"";

const USAGE: &str =
    "\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,\"total_tokens\":120}";

/// The text of one chunk of a long reply.
pub(crate) const WORD: &str = " word";

/// Writes a reply as one document.
pub(super) fn document(say: Say, out: &mut Vec<u8>) -> Result<()> {
    let (message, finish) = match say {
        Say::Add(step) => (call(&add(step), None), "tool_calls"),
        Say::Object(result, Ending::Finish) => (call(&finish(result), None), "tool_calls"),
        Say::Object(result, Ending::Native) => (text(&object(result)), "stop"),
        Say::Text { chunks, .. } => (text(&WORD.repeat(chunks as usize)), "stop"),
    };
    let body = format!(
        "{{{ENVELOPE},\"object\":\"chat.completion\",\"choices\":[{{\"index\":0,\"message\":{message},\"finish_reason\":\"{finish}\"}}],{USAGE}}}"
    );
    whole(200, "application/json", body.as_bytes(), out)
}

/// Writes a short reply as events, in one piece.
pub(super) fn events(say: Say, out: &mut Vec<u8>) -> Result<()> {
    let mut body = Vec::with_capacity(1024);
    let (deltas, finish) = match say {
        Say::Add(step) => (pieces(&add(step)), "tool_calls"),
        Say::Object(result, Ending::Finish) => (pieces(&finish(result)), "tool_calls"),
        Say::Object(result, Ending::Native) => (vec![text(""), content(&object(result))], "stop"),
        Say::Text { .. } => (vec![], "stop"),
    };
    for delta in deltas {
        event(&delta, "null", &mut body)?;
    }
    last_events(finish, &mut body)?;
    event_head(out);
    chunk(&body, out)?;
    out.extend_from_slice(b"0\r\n\r\n");
    Ok(())
}

/// Writes the head of a streamed reply.
pub(super) fn event_head(out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    );
}

/// Writes chunks of a long reply, in one piece.
pub(super) fn words(number: u32, out: &mut Vec<u8>) -> Result<()> {
    let mut body = Vec::new();
    for _ in 0..number {
        event(&content(WORD), "null", &mut body)?;
    }
    chunk(&body, out)
}

/// Writes the end of a long reply.
pub(super) fn end_of_words(out: &mut Vec<u8>) -> Result<()> {
    let mut body = Vec::new();
    last_events("stop", &mut body)?;
    chunk(&body, out)?;
    out.extend_from_slice(b"0\r\n\r\n");
    Ok(())
}

/// Writes a response that is not a model reply.
pub(super) fn whole(status: u16, kind: &str, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    )?;
    out.extend_from_slice(body);
    Ok(())
}

/// A tool call: its id, the tool, and the arguments, escaped for a JSON string.
struct Call {
    id: String,
    tool: &'static str,
    arguments: String,
}

fn add(step: u32) -> Call {
    let before = step.saturating_sub(1);
    Call {
        id: call_id(step),
        tool: "add",
        arguments: format!("{{\\\"a\\\":{before},\\\"b\\\":1}}"),
    }
}

fn finish(result: u32) -> Call {
    let arguments = format!("{{\\\"result\\\":{result}}}");
    Call { id: call_id(result + 1), tool: "__finish__", arguments }
}

fn object(result: u32) -> String {
    format!("{{\\\"result\\\":{result}}}")
}

fn text(content: &str) -> String {
    format!("{{\"role\":\"assistant\",\"content\":\"{content}\"}}")
}

fn content(content: &str) -> String {
    format!("{{\"content\":\"{content}\"}}")
}

/// Encodes a call as a message, or with an index as the first delta of a streamed one.
fn call(call: &Call, index: Option<u32>) -> String {
    let Call { id, tool, arguments } = call;
    let (index, arguments) = match index {
        Some(index) => (format!("\"index\":{index},"), ""),
        None => (String::new(), arguments.as_str()),
    };
    format!(
        "{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{{index}\"id\":\"{id}\",\"type\":\"function\",\"function\":{{\"name\":\"{tool}\",\"arguments\":\"{arguments}\"}}}}]}}"
    )
}

/// Returns the deltas of a streamed call.
fn pieces(made: &Call) -> Vec<String> {
    let arguments = &made.arguments;
    let rest = format!(
        "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{arguments}\"}}}}]}}"
    );
    vec![call(made, Some(0)), rest]
}

fn event(delta: &str, finish: &str, out: &mut Vec<u8>) -> Result<()> {
    write!(
        out,
        "data: {{{ENVELOPE},\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )?;
    Ok(())
}

fn last_events(finish: &str, out: &mut Vec<u8>) -> Result<()> {
    event("{}", &format!("\"{finish}\""), out)?;
    write!(
        out,
        "data: {{{ENVELOPE},\"object\":\"chat.completion.chunk\",\"choices\":[],{USAGE}}}\n\ndata: [DONE]\n\n"
    )?;
    Ok(())
}

/// Writes one chunk of a body with chunked transfer encoding.
fn chunk(body: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write!(out, "{:x}\r\n", body.len())?;
    out.extend_from_slice(body);
    out.extend_from_slice(b"\r\n");
    Ok(())
}
