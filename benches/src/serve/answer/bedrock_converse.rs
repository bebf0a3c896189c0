//! Converse, whose events are binary frames.

use anyhow::Result;

use super::{Call, Encoding, escaped};
use crate::serve::script::Marks;

/// The bytes of a frame besides its headers and its payload.
const FRAME: usize = 16;

/// The type of a header whose value is a string.
const STRING: u8 = 7;

/// The encoding of Converse.
pub(super) struct Converse;

impl Encoding for Converse {
    fn content_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    fn marks(&self) -> Marks {
        Marks { result: "\"toolResult\"", content: "\"text\":\"" }
    }

    fn call(&self, call: &Call, out: &mut Vec<u8>) -> Result<()> {
        let Call { id, tool, arguments } = call;
        self.text_start(out)?;
        let call = format!("{{\"toolUse\":{{\"toolUseId\":\"{id}\",\"name\":\"{tool}\"}}}}");
        frame("contentBlockStart", &format!("\"contentBlockIndex\":0,\"start\":{call}"), out)?;
        let arguments = escaped(arguments);
        delta(&format!("{{\"toolUse\":{{\"input\":\"{arguments}\"}}}}"), out)?;
        end("tool_use", out)
    }

    fn text_start(&self, out: &mut Vec<u8>) -> Result<()> {
        frame("messageStart", "\"role\":\"assistant\"", out)
    }

    fn text_piece(&self, piece: &str, out: &mut Vec<u8>) -> Result<()> {
        delta(&format!("{{\"text\":\"{}\"}}", escaped(piece)), out)
    }

    fn text_end(&self, _: &str, out: &mut Vec<u8>) -> Result<()> {
        end("end_turn", out)
    }
}

fn delta(delta: &str, out: &mut Vec<u8>) -> Result<()> {
    frame("contentBlockDelta", &format!("\"contentBlockIndex\":0,\"delta\":{delta}"), out)
}

fn end(reason: &str, out: &mut Vec<u8>) -> Result<()> {
    frame("contentBlockStop", "\"contentBlockIndex\":0", out)?;
    frame("messageStop", &format!("\"stopReason\":\"{reason}\""), out)?;
    let usage = "{\"inputTokens\":100,\"outputTokens\":20,\"totalTokens\":120}";
    frame("metadata", &format!("\"metrics\":{{\"latencyMs\":500}},\"usage\":{usage}"), out)
}

/// Writes a frame with these members, and with the padding that the server adds.
fn frame(kind: &str, members: &str, out: &mut Vec<u8>) -> Result<()> {
    let payload = format!("{{{members},\"p\":\"abcdefghijklmnop\"}}");
    let mut headers = Vec::with_capacity(128);
    for (name, value) in
        [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")]
    {
        headers.push(u8::try_from(name.len())?);
        headers.extend_from_slice(name.as_bytes());
        headers.push(STRING);
        headers.extend_from_slice(&u16::try_from(value.len())?.to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let mut frame = Vec::with_capacity(FRAME + headers.len() + payload.len());
    let length = u32::try_from(FRAME + headers.len() + payload.len())?;
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&u32::try_from(headers.len())?.to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    out.extend_from_slice(&frame);
    Ok(())
}
