//! Replies of Anthropic's Messages API.

use anyhow::Result;

use super::{Call, Encoding, escaped, named_event};
use crate::serve::script::Marks;

/// The encoding of Messages.
pub(super) struct Messages;

impl Encoding for Messages {
    fn marks(&self) -> Marks {
        Marks { result: "\"tool_result\"", content: "\"content\":\"" }
    }

    fn call(&self, call: &Call, out: &mut Vec<u8>) -> Result<()> {
        let Call { id, tool, arguments } = call;
        let block =
            format!("{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{tool}\",\"input\":{{}}}}");
        start(&block, out)?;
        for piece in ["", &escaped(arguments)] {
            let delta = format!("{{\"type\":\"input_json_delta\",\"partial_json\":\"{piece}\"}}");
            block_delta(&delta, out)?;
        }
        end("tool_use", out)
    }

    fn text_start(&self, out: &mut Vec<u8>) -> Result<()> {
        start("{\"type\":\"text\",\"text\":\"\"}", out)
    }

    fn text_piece(&self, piece: &str, out: &mut Vec<u8>) -> Result<()> {
        block_delta(&format!("{{\"type\":\"text_delta\",\"text\":\"{}\"}}", escaped(piece)), out)
    }

    fn text_end(&self, _: &str, out: &mut Vec<u8>) -> Result<()> {
        end("end_turn", out)
    }
}

fn start(block: &str, out: &mut Vec<u8>) -> Result<()> {
    let usage = "{\"input_tokens\":100,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":1}";
    let message = format!(
        "{{\"id\":\"msg_0123456789abcdefghijklmn\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"bench\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{usage}}}"
    );
    event("message_start", &format!(",\"message\":{message}"), out)?;
    event("content_block_start", &format!(",\"index\":0,\"content_block\":{block}"), out)?;
    event("ping", "", out)
}

fn block_delta(delta: &str, out: &mut Vec<u8>) -> Result<()> {
    event("content_block_delta", &format!(",\"index\":0,\"delta\":{delta}"), out)
}

fn end(reason: &str, out: &mut Vec<u8>) -> Result<()> {
    event("content_block_stop", ",\"index\":0", out)?;
    let delta = format!("{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}}");
    let usage = "{\"output_tokens\":20}";
    event("message_delta", &format!(",\"delta\":{delta},\"usage\":{usage}"), out)?;
    event("message_stop", "", out)
}

/// Writes an event with further members.
fn event(kind: &str, members: &str, out: &mut Vec<u8>) -> Result<()> {
    named_event(kind, &format!("{{\"type\":\"{kind}\"{members}}}"), out)
}
