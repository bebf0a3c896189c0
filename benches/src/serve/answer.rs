//! The encoding of replies.

use std::io::Write as _;

use anyhow::Result;

use super::script::{Marks, Say, call_id};
use crate::job::{Ending, Format};

mod anthropic_messages;
mod bedrock_converse;
mod gemini_generate;
mod openai_chat;
mod openai_responses;

/// The text of one chunk of a long reply.
pub(crate) const WORD: &str = " word";

/// A wire format, as a model server writes it. The events have the members that real servers send.
pub(super) trait Encoding: Sync {
    /// The content type of a streamed reply.
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Returns the texts that mark a tool result in a request.
    fn marks(&self) -> Marks;

    /// Writes a streamed reply that is a call.
    fn call(&self, call: &Call, out: &mut Vec<u8>) -> Result<()>;

    /// Writes the start of a streamed text.
    fn text_start(&self, out: &mut Vec<u8>) -> Result<()>;

    /// Writes a piece of a streamed text.
    fn text_piece(&self, piece: &str, out: &mut Vec<u8>) -> Result<()>;

    /// Writes the end of a streamed text. `text` is the whole text.
    fn text_end(&self, text: &str, out: &mut Vec<u8>) -> Result<()>;
}

/// Returns the encoding of a wire format.
pub(super) fn encoding(format: Format) -> &'static dyn Encoding {
    match format {
        Format::OpenaiChat => &openai_chat::Chat,
        Format::OpenaiResponses => &openai_responses::Responses,
        Format::AnthropicMessages => &anthropic_messages::Messages,
        Format::GeminiGenerate => &gemini_generate::Generate,
        Format::BedrockConverse => &bedrock_converse::Converse,
    }
}

/// Writes a reply as one document of Chat Completions.
pub(super) fn document(say: Say, out: &mut Vec<u8>) -> Result<()> {
    let body = match reply(say) {
        Reply::Call(call) => openai_chat::call_document(&call),
        Reply::Text(text) => openai_chat::text_document(&text),
    };
    whole(200, "application/json", body.as_bytes(), out)
}

/// Writes a short reply as events, in one piece.
pub(super) fn events(say: Say, encoding: &dyn Encoding, out: &mut Vec<u8>) -> Result<()> {
    let mut body = Vec::with_capacity(1024);
    match reply(say) {
        Reply::Call(call) => encoding.call(&call, &mut body)?,
        Reply::Text(text) => {
            encoding.text_start(&mut body)?;
            encoding.text_piece(&text, &mut body)?;
            encoding.text_end(&text, &mut body)?;
        }
    }
    event_head(encoding, out)?;
    chunk(&body, out)?;
    out.extend_from_slice(b"0\r\n\r\n");
    Ok(())
}

/// Writes the head of a streamed reply.
fn event_head(encoding: &dyn Encoding, out: &mut Vec<u8>) -> Result<()> {
    let kind = encoding.content_type();
    write!(out, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n")?;
    Ok(())
}

/// Writes the head and the start of a long reply.
pub(super) fn start_of_words(encoding: &dyn Encoding, out: &mut Vec<u8>) -> Result<()> {
    event_head(encoding, out)?;
    let mut body = Vec::new();
    encoding.text_start(&mut body)?;
    // A chunk without bytes would end the reply.
    if body.is_empty() { Ok(()) } else { chunk(&body, out) }
}

/// Writes chunks of a long reply, in one piece.
pub(super) fn words(number: u32, encoding: &dyn Encoding, out: &mut Vec<u8>) -> Result<()> {
    let mut body = Vec::new();
    for _ in 0..number {
        encoding.text_piece(WORD, &mut body)?;
    }
    chunk(&body, out)
}

/// Writes the end of a long reply of this many chunks.
pub(super) fn end_of_words(chunks: u32, encoding: &dyn Encoding, out: &mut Vec<u8>) -> Result<()> {
    let mut body = Vec::new();
    encoding.text_end(&WORD.repeat(chunks as usize), &mut body)?;
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

/// A reply with a single part.
enum Reply {
    Call(Call),
    Text(String),
}

/// A tool call: its id, the tool, and the arguments as JSON.
pub(super) struct Call {
    id: String,
    tool: &'static str,
    arguments: String,
}

fn reply(say: Say) -> Reply {
    match say {
        Say::Add(step) => Reply::Call(add(step)),
        Say::Object(result, Ending::Finish) => Reply::Call(finish(result)),
        Say::Object(result, Ending::Native) => Reply::Text(object(result)),
        Say::Text { chunks, .. } => Reply::Text(WORD.repeat(chunks as usize)),
    }
}

fn add(step: u32) -> Call {
    let before = step.saturating_sub(1);
    Call { id: call_id(step), tool: "add", arguments: format!("{{\"a\":{before},\"b\":1}}") }
}

fn finish(result: u32) -> Call {
    Call { id: call_id(result + 1), tool: "__finish__", arguments: object(result) }
}

fn object(result: u32) -> String {
    format!("{{\"result\":{result}}}")
}

/// Returns a text as the content of a JSON string. The texts of the server contain no other special characters.
fn escaped(text: &str) -> String {
    text.replace('"', "\\\"")
}

/// Writes a server-sent event with a name.
fn named_event(name: &str, data: &str, out: &mut Vec<u8>) -> Result<()> {
    write!(out, "event: {name}\ndata: {data}\n\n")?;
    Ok(())
}

/// Writes one chunk of a body with chunked transfer encoding.
fn chunk(body: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write!(out, "{:x}\r\n", body.len())?;
    out.extend_from_slice(body);
    out.extend_from_slice(b"\r\n");
    Ok(())
}
