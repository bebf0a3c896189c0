//! Messages as input items, each encoded once per session.

use helix_agents_core::json::Json;
use helix_agents_core::message::{
    AssistantMessage, ContentPart, Media, MediaSource, Message, ReplyPart, ToolCall,
    ToolResultMessage,
};

use serde_json::json;

use super::OpenAiResponses;
use crate::arguments;
use crate::json_writer::{Object, write_json};
use crate::wire_format::WireFormat as _;

/// Writes the input items of a message, separated by commas. `keeps_data` is `false` if the data of the provider has to be
/// left out.
pub(super) fn encode(message: &Message, keeps_data: bool, out: &mut Vec<u8>) {
    let mut items = Items { out, is_first: true };
    match message {
        Message::System { content } => {
            let mut item = items.begin();
            item.member("role", "developer");
            item.member("content", content);
            item.end();
        }
        Message::User(user) => {
            let mut item = items.begin();
            item.member("role", "user");
            content(user.parts().into_iter(), item.value("content"));
            item.end();
        }
        Message::Assistant(assistant) => items.assistant(assistant, keeps_data),
        Message::Tool(result) => items.result(result),
    }
}

struct Items<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Items<'_> {
    fn next(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        self.out
    }

    fn begin(&mut self) -> Object<'_> {
        Object::begin(self.next())
    }

    fn assistant(&mut self, message: &AssistantMessage, keeps_data: bool) {
        let is_own = keeps_data
            && message
                .layout
                .as_ref()
                .is_some_and(|layout| layout.provider.starts_with(OpenAiResponses::API));
        let mut parts = message.parts().peekable();
        // The API rejects reasoning that nothing follows, such as that of a reply that was cut off.
        let (mut end, mut is_first) = (self.out.len(), self.is_first);
        while let Some(part) = parts.next() {
            let before = self.out.len();
            match part {
                ReplyPart::Thinking { text, data: Some(data) } if is_own => {
                    let mut item = self.begin();
                    item.member("type", "reasoning");
                    item.members(Some(data));
                    let out = item.value("summary");
                    let mut texts = vec![text];
                    // The further parts of the summary have empty data.
                    while let Some(ReplyPart::Thinking { text, .. }) =
                        parts.next_if(|part| is_further_summary(part))
                    {
                        texts.push(text);
                    }
                    let texts = texts.into_iter().filter(|text| !text.is_empty());
                    let texts = texts.map(|text| json!({"type": "summary_text", "text": text}));
                    write_json(out, &texts.collect::<Vec<_>>());
                    item.end();
                    continue;
                }
                ReplyPart::Text { text, data } => self.text(text, data.filter(|_| is_own)),
                ReplyPart::Call { call, data } => self.call(call, data.filter(|_| is_own)),
                ReplyPart::Opaque { data } if is_own => {
                    self.next().extend_from_slice(data.text().as_bytes());
                }
                // Reasoning and data of another provider mean nothing here.
                _ => continue,
            }
            // An empty text writes nothing.
            if self.out.len() > before {
                (end, is_first) = (self.out.len(), self.is_first);
            }
        }
        self.out.truncate(end);
        self.is_first = is_first;
    }

    fn text(&mut self, text: &str, data: Option<&Json>) {
        if text.is_empty() {
            return;
        }
        let members = data.map(Json::to_value);
        let has = |name: &str| members.as_ref().is_some_and(|members| members.get(name).is_some());
        let mut item = self.begin();
        item.member("type", "message");
        item.member("role", "assistant");
        item.members(data);
        if has("id") {
            if !has("status") {
                item.member("status", "completed");
            }
            let out = item.value("content");
            out.extend_from_slice(b"[{\"type\":\"output_text\",\"text\":");
            write_json(out, text);
            out.extend_from_slice(b",\"annotations\":[]}]");
        } else {
            // The message of another provider.
            item.member("content", text);
        }
        item.end();
    }

    fn call(&mut self, call: &ToolCall, data: Option<&Json>) {
        let mut item = self.begin();
        item.member("type", "function_call");
        item.members(data);
        item.member("call_id", call.wire_id());
        item.member("name", &*call.name);
        item.member("arguments", arguments::object(&call.arguments));
        item.end();
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let mut item = self.begin();
        item.member("type", "function_call_output");
        item.member("call_id", result.wire_id());
        if result.attachments.is_empty() {
            item.member("output", &result.content);
        } else {
            let text = [ContentPart::Text(&result.content)].into_iter();
            let parts = text.chain(result.attachments.iter().map(ContentPart::Media));
            content(parts, item.value("output"));
        }
        item.end();
    }
}

/// Returns `true` for a part of a summary that is not its first one.
fn is_further_summary(part: &ReplyPart<'_>) -> bool {
    matches!(part, ReplyPart::Thinking { data: Some(data), .. } if data.text() == "{}")
}

fn content<'a>(parts: impl Iterator<Item = ContentPart<'a>>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match part {
            ContentPart::Media(media) => encode_media(media, out),
            ContentPart::Text(text) => {
                let mut object = Object::begin(out);
                object.member("type", "input_text");
                object.member("text", text);
                object.end();
            }
            _ => out.extend_from_slice(b"{\"type\":\"input_text\",\"text\":\"\"}"),
        }
    }
    out.push(b']');
}

fn encode_media(media: &Media, out: &mut Vec<u8>) {
    let is_image = media.is_image();
    let mut object = Object::begin(out);
    object.member("type", if is_image { "input_image" } else { "input_file" });
    if is_image {
        object.member("detail", "auto");
    }
    match &media.source {
        MediaSource::Base64(bytes) => {
            let url = format!("data:{};base64,{bytes}", media.media_type);
            object.member(if is_image { "image_url" } else { "file_data" }, &url);
            if !is_image {
                object.member("filename", media.name.as_deref().unwrap_or("file"));
            }
        }
        MediaSource::Url(url) => {
            object.member(if is_image { "image_url" } else { "file_url" }, &**url);
        }
        MediaSource::File { id, .. } => object.member("file_id", &**id),
        _ => {}
    }
    object.end();
}
