//! Replies of Chat Completions.

use std::io::Write as _;

use anyhow::Result;

use super::{Call, Encoding, escaped};
use crate::serve::script::Marks;

const ENVELOPE: &str =
    "\"id\":\"chatcmpl-0123456789abcdefghijklmnopqr\",\"created\":1735689600,\"model\":\"bench\"";

const USAGE: &str =
    "\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,\"total_tokens\":120}";

/// The encoding of Chat Completions.
pub(super) struct Chat;

impl Encoding for Chat {
    fn marks(&self) -> Marks {
        Marks { result: "\"role\":\"tool\"", content: "\"content\":\"" }
    }

    fn call(&self, made: &Call, out: &mut Vec<u8>) -> Result<()> {
        let arguments = escaped(&made.arguments);
        event(&call(made, Some(0)), "null", out)?;
        let rest = format!(
            "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{arguments}\"}}}}]}}"
        );
        event(&rest, "null", out)?;
        last_events("tool_calls", out)
    }

    fn text_start(&self, out: &mut Vec<u8>) -> Result<()> {
        event(&text(""), "null", out)
    }

    fn text_piece(&self, piece: &str, out: &mut Vec<u8>) -> Result<()> {
        event(&format!("{{\"content\":\"{}\"}}", escaped(piece)), "null", out)
    }

    fn text_end(&self, _: &str, out: &mut Vec<u8>) -> Result<()> {
        last_events("stop", out)
    }
}

/// Returns a reply that is a call as one document.
pub(super) fn call_document(made: &Call) -> String {
    document(&call(made, None), "tool_calls")
}

/// Returns a reply that is a text as one document.
pub(super) fn text_document(content: &str) -> String {
    document(&text(content), "stop")
}

fn document(message: &str, finish: &str) -> String {
    format!(
        "{{{ENVELOPE},\"object\":\"chat.completion\",\"choices\":[{{\"index\":0,\"message\":{message},\"finish_reason\":\"{finish}\"}}],{USAGE}}}"
    )
}

fn text(content: &str) -> String {
    format!("{{\"role\":\"assistant\",\"content\":\"{}\"}}", escaped(content))
}

/// Encodes a call as a message, or with an index as the first delta of a streamed one.
fn call(call: &Call, index: Option<u32>) -> String {
    let Call { id, tool, arguments } = call;
    let (index, arguments) = match index {
        Some(index) => (format!("\"index\":{index},"), String::new()),
        None => (String::new(), escaped(arguments)),
    };
    format!(
        "{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{{index}\"id\":\"{id}\",\"type\":\"function\",\"function\":{{\"name\":\"{tool}\",\"arguments\":\"{arguments}\"}}}}]}}"
    )
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
