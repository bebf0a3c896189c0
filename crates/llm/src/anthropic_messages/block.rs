//! The content blocks of a reply, and their conversion into parts.

use helix_agents_core::json::Json;
use helix_agents_core::llm::ReplyBuilder;
use helix_agents_core::message::Arguments;
use helix_agents_core::step::ParsedToolCall;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::wire::Delta;

/// A content block, while it arrives.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// The members that the kind does not name. They are sent back unchanged.
    members: Map<String, Value>,
    /// The pieces of the arguments of a call.
    arguments: String,
    /// The block as it was sent, as long as no piece has changed it.
    unchanged: Option<Box<RawValue>>,
}

/// The kind of a content block, with its text so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text(String),
    Thinking(String),
    Call {
        id: String,
        name: String,
    },
    /// A block that only the provider reads, such as the result of a tool that it ran.
    Opaque,
}

impl Block {
    /// Parses the start of a block, or a complete block.
    pub(super) fn parse(raw: &RawValue) -> serde_json::Result<Self> {
        let mut members: Map<String, Value> = serde_json::from_str(raw.get())?;
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let kind = match text("type").as_str() {
            "text" => Kind::Text(text("text")),
            "thinking" => Kind::Thinking(text("thinking")),
            "tool_use" => Kind::Call { id: text("id"), name: text("name") },
            _ => Kind::Opaque,
        };
        // The start of a call has an empty input, and its pieces follow.
        let arguments = match kind {
            Kind::Call { .. } => match members.remove("input") {
                Some(Value::Object(input)) if input.is_empty() => String::new(),
                Some(input) => input.to_string(),
                None => String::new(),
            },
            _ => String::new(),
        };
        members.retain(|_, value| !value.is_null());
        let unchanged = (kind == Kind::Opaque).then(|| raw.to_owned());
        if kind == Kind::Opaque {
            members = serde_json::from_str(raw.get())?;
        }
        Ok(Self { kind, members, arguments, unchanged })
    }

    /// Adds a piece of the block.
    pub(super) fn add(&mut self, delta: &Delta<'_>) {
        if let Some(piece) = &delta.partial_json {
            self.arguments.push_str(piece);
            self.unchanged = self.unchanged.take().filter(|_| piece.is_empty());
        }
        match (&mut self.kind, &delta.text, &delta.thinking) {
            (Kind::Text(text), Some(piece), _) | (Kind::Thinking(text), _, Some(piece)) => {
                text.push_str(piece);
            }
            _ => {}
        }
        if let Some(piece) = &delta.signature {
            match self.members.get_mut("signature") {
                Some(Value::String(signature)) => signature.push_str(piece),
                _ => {
                    self.members.insert("signature".to_owned(), piece.to_string().into());
                }
            }
        }
        if let Some(citation) = delta.citation.and_then(value) {
            match self.members.get_mut("citations") {
                Some(Value::Array(citations)) => citations.push(citation),
                _ => {
                    self.members.insert("citations".to_owned(), vec![citation].into());
                }
            }
        }
        if let (Kind::Opaque, Some(content)) = (&self.kind, delta.content.and_then(value)) {
            self.members.insert("content".to_owned(), content);
            self.unchanged = None;
        }
    }

    /// Converts the complete block into a part of the reply.
    pub(super) fn end(mut self, parts: &mut ReplyBuilder) {
        match self.kind {
            Kind::Text(text) => parts.text(&text, data(self.members)),
            Kind::Thinking(text) => parts.thinking(&text, data(self.members)),
            Kind::Call { id, name } => {
                let call = ParsedToolCall::new(&*id, &*name, Arguments::parse(&self.arguments));
                parts.call(call, data(self.members));
            }
            Kind::Opaque => {
                if let Some(input) = serde_json::from_str(&self.arguments).ok()
                    && !self.arguments.is_empty()
                {
                    self.members.insert("input".to_owned(), input);
                }
                let unchanged = self.unchanged.and_then(|raw| Json::parse(raw.get()).ok());
                parts.opaque(unchanged.unwrap_or_else(|| Value::Object(self.members).into()));
            }
        }
    }
}

fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

fn data(members: Map<String, Value>) -> Option<Json> {
    (!members.is_empty()).then(|| Value::Object(members).into())
}
