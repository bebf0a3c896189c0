//! Replies of Gemini's `generateContent`.

use std::io::Write as _;

use anyhow::Result;

use super::{Call, Encoding, escaped};
use crate::serve::script::Marks;

const USAGE: &str = "{\"promptTokenCount\":100,\"candidatesTokenCount\":20,\"totalTokenCount\":120,\"promptTokensDetails\":[{\"modality\":\"TEXT\",\"tokenCount\":100}]}";

/// The encoding of `generateContent`.
pub(super) struct Generate;

impl Encoding for Generate {
    fn marks(&self) -> Marks {
        Marks { result: "\"functionResponse\"", content: "\"output\":\"" }
    }

    fn call(&self, call: &Call, out: &mut Vec<u8>) -> Result<()> {
        let Call { id, tool, arguments } = call;
        let call = format!("{{\"name\":\"{tool}\",\"args\":{arguments},\"id\":\"{id}\"}}");
        let signature = "U2lnbmVkIHJlYXNvbmluZyBvZiB0aGUgbW9kZWwgdGhhdCBpcyBzZW50IGJhY2s=";
        let part = format!("{{\"functionCall\":{call},\"thoughtSignature\":\"{signature}\"}}");
        document(&part, "", out)?;
        self.text_end("", out)
    }

    fn text_start(&self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn text_piece(&self, piece: &str, out: &mut Vec<u8>) -> Result<()> {
        document(&format!("{{\"text\":\"{}\"}}", escaped(piece)), "", out)
    }

    fn text_end(&self, _: &str, out: &mut Vec<u8>) -> Result<()> {
        document("{\"text\":\"\"}", ",\"finishReason\":\"STOP\"", out)
    }
}

/// Writes a document with one part, and with further members of the candidate.
fn document(part: &str, members: &str, out: &mut Vec<u8>) -> Result<()> {
    write!(
        out,
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}}{members},\"index\":0}}],\"usageMetadata\":{USAGE},\"modelVersion\":\"bench\",\"responseId\":\"0123456789abcdefghijkl\"}}\r\n\r\n"
    )?;
    Ok(())
}
