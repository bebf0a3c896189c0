//! Messages as content blocks, each encoded once per session.
//!
//! A message is encoded without its role: the results of several calls are separate messages of the transcript, and
//! blocks of one message of the request.

use std::borrow::Cow;

use helix_agents_core::json::Json;
use helix_agents_core::message::{
    AssistantMessage, ContentPart, Media, MediaSource, Message, ReplyPart, ToolCall,
    ToolResultMessage,
};
use serde::Deserialize;

use crate::arguments;
use crate::call_id;
use crate::json_writer::{Object, write_json};

/// The parts of a reply that a request contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All parts, as the model produced them.
    Whole,
    /// The parts of a reply that is not continued. The API rejects, and this omits, reasoning at its end and calls
    /// of the provider's own tools that have no result.
    Closed,
    /// The parts that every provider understands.
    WithoutData,
}

/// The members of an opaque part that decide whether it is sent.
#[derive(Debug, Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
    /// The id of a call of the provider's own tools.
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    /// The id of the call, if this is a result.
    #[serde(borrow, default)]
    tool_use_id: Option<Cow<'a, str>>,
}

/// Returns the role of a message in the request.
pub(super) fn role(message: &Message) -> &'static str {
    match message {
        Message::Assistant(_) => "assistant",
        _ => "user",
    }
}

/// Returns `true` if a reply may have parts that only a continuation completes.
pub(super) fn is_open(message: &Message) -> bool {
    let Message::Assistant(reply) = message else { return false };
    let is_written = |part: &ReplyPart<'_>| match part {
        ReplyPart::Text { text, .. } => !text.trim().is_empty(),
        _ => true,
    };
    let last = reply.parts().filter(is_written).last();
    matches!(last, Some(ReplyPart::Thinking { .. }))
        || reply.parts().any(|part| matches!(part, ReplyPart::Opaque { .. }))
}

/// Returns `true` if the model that made a reply continues it: in the coming reply, after results, or in the next message.
pub(super) fn is_continued(message: &Message, next: Option<&Message>) -> bool {
    match (message, next) {
        (_, None | Some(Message::Tool(_))) => true,
        (Message::Assistant(reply), Some(Message::Assistant(next))) => {
            reply.layout.as_ref().zip(next.layout.as_ref()).is_some_and(|(reply, next)| {
                reply.provider == next.provider && reply.model == next.model
            })
        }
        _ => false,
    }
}

/// Writes the content blocks of a message, separated by commas.
pub(super) fn encode(message: &Message, extent: Extent, out: &mut Vec<u8>) {
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
        Message::Assistant(assistant) => blocks.assistant(assistant, extent),
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

    fn assistant(&mut self, message: &AssistantMessage, extent: Extent) {
        let is_own = extent != Extent::WithoutData && message.layout.is_some();
        let has_text = message.content.as_ref().is_some_and(|text| !text.trim().is_empty());
        let answered = answered(message);
        // The end of the blocks that may be the last ones.
        let (mut end, mut is_first) = (self.out.len(), self.is_first);
        for part in message.parts() {
            let before = self.out.len();
            let mut is_reasoning = false;
            match part {
                ReplyPart::Thinking { text, data } if is_own => {
                    self.thinking(text, data);
                    is_reasoning = true;
                }
                // Signed reasoning is bound to the exact texts beside it.
                ReplyPart::Text { text, data } if is_own && has_text && !text.is_empty() => {
                    self.whole_text(text, data);
                }
                ReplyPart::Text { text, data } => self.text(text, data.filter(|_| is_own)),
                ReplyPart::Call { call, data } => self.call(call, data.filter(|_| is_own)),
                ReplyPart::Opaque { data } if is_own => {
                    let Some(head) = Head::of_block(data) else { continue };
                    if extent == Extent::Closed && head.is_unanswered(&answered) {
                        continue;
                    }
                    is_reasoning = head.is("redacted_thinking");
                    self.next().extend_from_slice(data.text().as_bytes());
                }
                // Reasoning and data of another provider mean nothing here.
                _ => {}
            }
            let may_be_last = !is_reasoning || extent == Extent::Whole;
            if may_be_last && self.out.len() > before {
                (end, is_first) = (self.out.len(), self.is_first);
            }
        }
        self.out.truncate(end);
        self.is_first = is_first;
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

impl<'a> Head<'a> {
    /// Parses the head of a content block, or returns `None` if the part belongs to the reply as a whole.
    fn of_block(data: &'a Json) -> Option<Self> {
        let head: Self = serde_json::from_str(data.text()).ok()?;
        head.kind.is_some().then_some(head)
    }

    fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// Returns `true` for a call of the provider's own tools without a result.
    fn is_unanswered(&self, answered: &[Cow<'_, str>]) -> bool {
        let is_call = self.kind.as_ref().is_some_and(|kind| kind.ends_with("tool_use"));
        is_call && !self.id.as_ref().is_some_and(|id| answered.contains(id))
    }
}

/// Returns the calls of the provider's own tools whose results the reply contains.
fn answered(message: &AssistantMessage) -> Vec<Cow<'_, str>> {
    let results = message.parts().filter_map(|part| match part {
        ReplyPart::Opaque { data } => Head::of_block(data)?.tool_use_id,
        _ => None,
    });
    results.collect()
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
