//! Messages as parts, each encoded once per session.
//!
//! A message is encoded without its role: the results of several calls are separate messages of the transcript, and
//! parts of one content of the request.

use helix_agents_core::json::Json;
use helix_agents_core::message::{
    AssistantMessage, ContentPart, Media, MediaSource, Message, ReplyPart, ToolCall,
    ToolResultMessage,
};

use crate::arguments;
use crate::json_writer::Object;

/// The signature for a call that another model made. Newer models reject calls without a signature.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Returns the role of a message in the request.
pub(super) fn role(message: &Message) -> &'static str {
    match message {
        Message::Assistant(_) => "model",
        _ => "user",
    }
}

/// Returns `true` if the message is a reply whose calls have no signatures of this provider.
pub(super) fn is_unsigned(message: &Message, is_foreign: bool) -> bool {
    let Message::Assistant(reply) = message else { return false };
    (is_foreign || reply.layout.is_none()) && !reply.tool_calls.is_empty()
}

/// The data of a reply that a request contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// The signatures of the reply.
    Own,
    /// No data.
    Nothing,
    /// Only the signature for calls that another model made.
    Unsigned,
}

/// Writes the parts of a message, separated by commas.
pub(super) fn encode(message: &Message, data: Data, out: &mut Vec<u8>) {
    let mut parts = Parts { out, is_first: true, marks_unsigned: data == Data::Unsigned };
    match message {
        Message::System { content } => parts.text(content, false, None),
        Message::User(user) => {
            for part in user.parts() {
                match part {
                    ContentPart::Text(text) => parts.text(text, false, None),
                    ContentPart::Media(media) => parts.media(media),
                    _ => {}
                }
            }
        }
        Message::Assistant(assistant) => parts.assistant(assistant, data == Data::Own),
        Message::Tool(result) => parts.result(result),
    }
}

struct Parts<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
    marks_unsigned: bool,
}

impl Parts<'_> {
    fn next(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        self.out
    }

    /// Writes a text. An empty text is written only if it has a signature.
    fn text(&mut self, text: &str, is_thought: bool, data: Option<&Json>) {
        if text.is_empty() && data.is_none() {
            return;
        }
        let mut part = Object::begin(self.next());
        part.member("text", text);
        if is_thought {
            part.raw("thought", b"true");
        }
        part.members(data);
        part.end();
    }

    fn media(&mut self, media: &Media) {
        let mut part = Object::begin(self.next());
        match &media.source {
            MediaSource::Base64(bytes) => {
                let mut data = Object::begin(part.value("inlineData"));
                data.member("mimeType", &*media.media_type);
                data.member("data", &**bytes);
                data.end();
            }
            MediaSource::Url(address) | MediaSource::File { id: address, .. } => {
                let mut data = Object::begin(part.value("fileData"));
                data.member("mimeType", &*media.media_type);
                data.member("fileUri", &**address);
                data.end();
            }
            _ => part.member("text", ""),
        }
        part.end();
    }

    fn assistant(&mut self, message: &AssistantMessage, keeps_data: bool) {
        let is_own = keeps_data && message.layout.is_some();
        for part in message.parts() {
            match part {
                ReplyPart::Thinking { text, data } if is_own => self.text(text, true, data),
                ReplyPart::Text { text, data } => self.text(text, false, data.filter(|_| is_own)),
                ReplyPart::Call { call, data } => self.call(call, data.filter(|_| is_own)),
                ReplyPart::Opaque { data } if is_own => {
                    self.next().extend_from_slice(data.text().as_bytes());
                }
                // Reasoning and data of another provider mean nothing here.
                _ => {}
            }
        }
    }

    fn call(&mut self, call: &ToolCall, data: Option<&Json>) {
        let is_unsigned = std::mem::take(&mut self.marks_unsigned);
        let mut part = Object::begin(self.next());
        let mut function = Object::begin(part.value("functionCall"));
        function.member("id", call.wire_id());
        function.member("name", &*call.name);
        function.raw("args", arguments::object(&call.arguments).as_bytes());
        function.end();
        part.members(data);
        if is_unsigned {
            part.member("thoughtSignature", UNSIGNED);
        }
        part.end();
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let mut part = Object::begin(self.next());
        let mut function = Object::begin(part.value("functionResponse"));
        function.member("id", result.wire_id());
        function.member("name", &*result.tool_name);
        let mut response = Object::begin(function.value("response"));
        response.member(if result.failed { "error" } else { "output" }, &result.content);
        response.end();
        function.end();
        part.end();
        result.attachments.iter().for_each(|media| self.media(media));
    }
}
