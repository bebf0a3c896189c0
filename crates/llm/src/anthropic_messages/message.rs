//! Messages as content blocks, each encoded once per session.
//!
//! A message is encoded without its role: the results of several calls are separate messages of the transcript, and
//! blocks of one message of the request.

use helix_agents_core::json::Json;
use helix_agents_core::message::{
    AssistantMessage, ContentPart, Media, MediaSource, Message, ReplyPart, ToolCall,
    ToolResultMessage,
};

use super::API;
use crate::arguments;
use crate::call_id;
use crate::json_writer::{Object, write_json};

/// Returns the role of a message in the request.
pub(super) fn role(message: &Message) -> &'static str {
    match message {
        Message::Assistant(_) => "assistant",
        _ => "user",
    }
}

/// Writes the content blocks of a message, separated by commas.
pub(super) fn encode(message: &Message, out: &mut Vec<u8>) {
    let mut blocks = Blocks { out, is_first: true };
    match message {
        Message::System { content } => blocks.text(content, None),
        Message::User(user) => {
            for part in user.parts() {
                match part {
                    ContentPart::Text(text) => blocks.text(text, None),
                    ContentPart::Media(media) => blocks.media(media),
                    _ => {}
                }
            }
        }
        Message::Assistant(assistant) => blocks.assistant(assistant),
        Message::Tool(result) => blocks.result(result),
    }
}

struct Blocks<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Blocks<'_> {
    /// Starts the next block. The caller writes it into the returned buffer.
    fn next(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        self.out
    }

    /// Writes a text, unless it is empty: the API rejects empty text, and text of white space only.
    fn text(&mut self, text: &str, data: Option<&Json>) {
        if text.trim().is_empty() {
            return;
        }
        self.whole_text(text, data);
    }

    fn whole_text(&mut self, text: &str, data: Option<&Json>) {
        let mut object = Object::begin(self.next());
        object.member("type", "text");
        object.member("text", text);
        object.members(data);
        object.end();
    }

    fn media(&mut self, media: &Media) {
        encode_media(media, self.next());
    }

    fn assistant(&mut self, message: &AssistantMessage) {
        let is_own = message.layout.as_ref().is_some_and(|layout| &*layout.provider == API);
        let has_text = message.content.as_ref().is_some_and(|text| !text.trim().is_empty());
        for part in message.parts() {
            match part {
                ReplyPart::Thinking { text, data } if is_own => self.thinking(text, data),
                // Signed reasoning is bound to the exact texts beside it.
                ReplyPart::Text { text, data } if is_own && has_text && !text.is_empty() => {
                    self.whole_text(text, data);
                }
                ReplyPart::Text { text, data } => self.text(text, data.filter(|_| is_own)),
                ReplyPart::Call { call, data } => self.call(call, data.filter(|_| is_own)),
                ReplyPart::Opaque { data } if is_own => {
                    self.next().extend_from_slice(data.text().as_bytes());
                }
                // Reasoning and data of another provider mean nothing here.
                _ => {}
            }
        }
    }

    /// Writes reasoning. Without a signature, the API rejects it.
    fn thinking(&mut self, text: &str, data: Option<&Json>) {
        let Some(data) = data else { return };
        let mut object = Object::begin(self.next());
        object.member("type", "thinking");
        object.member("thinking", text);
        object.members(Some(data));
        object.end();
    }

    fn call(&mut self, call: &ToolCall, data: Option<&Json>) {
        let mut object = Object::begin(self.next());
        object.member("type", "tool_use");
        object.member("id", &*call_id::strict(call.wire_id()));
        object.member("name", &*call.name);
        object.raw("input", arguments::object(&call.arguments).as_bytes());
        object.members(data);
        object.end();
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let mut object = Object::begin(self.next());
        object.member("type", "tool_result");
        object.member("tool_use_id", &*call_id::strict(result.wire_id()));
        if result.failed {
            object.raw("is_error", b"true");
        }
        if result.attachments.is_empty() {
            object.member("content", &result.content);
        } else {
            let out = object.value("content");
            out.push(b'[');
            let mut blocks = Blocks { out, is_first: true };
            blocks.text(&result.content, None);
            result.attachments.iter().for_each(|media| blocks.media(media));
            blocks.out.push(b']');
        }
        object.end();
    }
}

fn encode_media(media: &Media, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.member("type", if media.is_image() { "image" } else { "document" });
    let mut source = Object::begin(object.value("source"));
    match &media.source {
        MediaSource::Base64(bytes) => {
            source.member("type", "base64");
            source.member("media_type", &*media.media_type);
            source.member("data", &**bytes);
        }
        MediaSource::Url(url) => {
            source.member("type", "url");
            source.member("url", &**url);
        }
        MediaSource::File { id, .. } => {
            source.member("type", "file");
            source.member("file_id", &**id);
        }
        _ => {}
    }
    source.end();
    if let Some(name) = media.name.as_ref().filter(|_| !media.is_image()) {
        write_json(object.value("title"), &**name);
    }
    object.end();
}
