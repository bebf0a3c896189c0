//! Messages as content blocks, each encoded once per session.

use helix_agents_core::json::Json;
use helix_agents_core::message::{
    AssistantMessage, ContentPart, Media, MediaSource, Message, ReplyPart, ToolCall,
    ToolResultMessage,
};

use crate::arguments;
use crate::call_id;
use crate::json_writer::Object;

/// Returns the role of a message in the request.
pub(super) fn role(message: &Message) -> &'static str {
    match message {
        Message::Assistant(_) => "assistant",
        _ => "user",
    }
}

/// Writes the content blocks of a message, separated by commas. `keeps_data` is `false` if the data that belongs to the
/// reply of one model has to be left out.
pub(super) fn encode(message: &Message, keeps_data: bool, out: &mut Vec<u8>) {
    let mut blocks = Blocks { out, is_first: true };
    match message {
        Message::System { content } => blocks.text(content),
        Message::User(user) => {
            for part in user.parts() {
                match part {
                    ContentPart::Text(text) => blocks.text(text),
                    ContentPart::Media(media) => blocks.media(media),
                    _ => {}
                }
            }
        }
        Message::Assistant(assistant) => blocks.assistant(assistant, keeps_data),
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

    /// Writes a text, unless it is empty: the API rejects empty text.
    fn text(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let mut object = Object::begin(self.next());
        object.member("text", text);
        object.end();
    }

    fn assistant(&mut self, message: &AssistantMessage, keeps_data: bool) {
        let is_own = keeps_data && message.layout.is_some();
        for part in message.parts() {
            match part {
                ReplyPart::Thinking { text, data } if is_own => self.thinking(text, data),
                ReplyPart::Text { text, .. } => self.text(text),
                ReplyPart::Call { call, .. } => self.call(call),
                ReplyPart::Opaque { data } if is_own => {
                    self.next().extend_from_slice(data.text().as_bytes());
                }
                // Reasoning and data of another provider mean nothing here.
                _ => {}
            }
        }
    }

    /// Writes reasoning with its signature. Without one, the API rejects it.
    fn thinking(&mut self, text: &str, data: Option<&Json>) {
        let Some(data) = data else { return };
        let mut block = Object::begin(self.next());
        let mut content = Object::begin(block.value("reasoningContent"));
        let mut reasoning = Object::begin(content.value("reasoningText"));
        reasoning.member("text", text);
        reasoning.members(Some(data));
        reasoning.end();
        content.end();
        block.end();
    }

    fn call(&mut self, call: &ToolCall) {
        let mut block = Object::begin(self.next());
        let mut object = Object::begin(block.value("toolUse"));
        object.member("toolUseId", &*call_id::strict(call.wire_id()));
        object.member("name", &*call.name);
        object.raw("input", arguments::object(&call.arguments).as_bytes());
        object.end();
        block.end();
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let mut block = Object::begin(self.next());
        let mut object = Object::begin(block.value("toolResult"));
        object.member("toolUseId", &*call_id::strict(result.wire_id()));
        object.member("status", if result.failed { "error" } else { "success" });
        let out = object.value("content");
        out.push(b'[');
        let mut blocks = Blocks { out, is_first: true };
        blocks.text(&result.content);
        result.attachments.iter().for_each(|media| blocks.media(media));
        blocks.out.push(b']');
        object.end();
        block.end();
    }

    /// Writes an image or a document. The API takes only bytes, so the model reads that there was another file.
    fn media(&mut self, media: &Media) {
        let MediaSource::Base64(bytes) = &media.source else {
            let kind = &media.media_type;
            return self.text(&format!("(a file of type {kind} that cannot be shown here)"));
        };
        let mut block = Object::begin(self.next());
        let kind = if media.is_image() { "image" } else { "document" };
        let mut object = Object::begin(block.value(kind));
        object.member("format", format(&media.media_type));
        if !media.is_image() {
            object.member("name", &document_name(media.name.as_deref().unwrap_or_default()));
        }
        let mut source = Object::begin(object.value("source"));
        source.member("bytes", &**bytes);
        source.end();
        object.end();
        block.end();
    }
}

/// Returns the API's name of a media type.
fn format(media_type: &str) -> &str {
    match media_type {
        "text/plain" => "txt",
        "text/markdown" => "md",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        other => other.rsplit('/').next().unwrap_or_default(),
    }
}

/// Returns the name of a document without the characters that the API rejects, such as dots.
fn document_name(name: &str) -> String {
    let is_permitted =
        |character: char| character.is_ascii_alphanumeric() || "-()[]".contains(character);
    let words = name.split(|character: char| !is_permitted(character));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name = words.join(" ");
    if name.is_empty() { "document".to_owned() } else { name.chars().take(200).collect() }
}
