//! The parts of a reply.

use helix_agents_core::json::Json;
use helix_agents_core::llm::ReplyBuilder;
use helix_agents_core::message::Arguments;
use helix_agents_core::step::ParsedToolCall;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::wire::WirePart;

/// A part of a reply, or a piece of one.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// The signature, which is sent back at the same place.
    signature: Option<String>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text(String),
    Thinking(String),
    Call(CallPart),
    /// A part that only the provider reads, such as code that it ran.
    Opaque(Json),
}

/// A call, or a piece of one whose arguments are streamed.
#[derive(Debug)]
pub(super) struct CallPart {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
    /// The pieces of streamed arguments.
    pub(super) pieces: Vec<Value>,
    /// Whether more pieces follow.
    pub(super) will_continue: bool,
}

impl Part {
    /// Creates a part from its members. `json` returns the whole part as JSON, and is called only if the part is data.
    /// Returns `None` if the part is not valid.
    pub(super) fn new<'a>(
        part: WirePart<'_>,
        json: impl FnOnce() -> Option<&'a RawValue>,
    ) -> Option<Self> {
        let kind = match (part.text, part.function_call) {
            (Some(text), _) if part.thought == Some(true) => Kind::Thinking(text.into_owned()),
            (Some(text), _) => Kind::Text(text.into_owned()),
            (None, Some(call)) => Kind::Call(CallPart::new(call)),
            (None, None) => Kind::Opaque(Json::parse(json()?.get()).ok()?),
        };
        Some(Self { kind, signature: part.thought_signature })
    }

    /// Joins a following piece to this part. Returns the piece if it is a part of its own: a signed part is never joined
    /// with another one.
    pub(super) fn join(&mut self, next: Self) -> Option<Self> {
        let is_signed = self.signature.is_some() || next.signature.is_some();
        match (&mut self.kind, &next.kind) {
            (Kind::Text(text), Kind::Text(piece))
            | (Kind::Thinking(text), Kind::Thinking(piece))
                if !is_signed =>
            {
                text.push_str(piece);
                None
            }
            _ => Some(next),
        }
    }

    /// Adds the part to the parts of the reply.
    pub(super) fn add_to(self, parts: &mut ReplyBuilder) {
        let data = self.signature.map(|signature| json!({ "thoughtSignature": signature }).into());
        match self.kind {
            Kind::Text(text) => parts.text(&text, data),
            Kind::Thinking(text) => parts.thinking(&text, data),
            Kind::Call(call) => {
                let arguments = Arguments::parse(&call.arguments.to_string());
                parts.call(ParsedToolCall::new(call.id, call.name, arguments), data);
            }
            Kind::Opaque(json) => parts.opaque(json),
        }
    }
}

impl CallPart {
    fn new(mut members: Map<String, Value>) -> Self {
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (id, name) = (text("id"), text("name"));
        Self {
            id,
            name,
            will_continue: members.get("willContinue").and_then(Value::as_bool) == Some(true),
            pieces: match members.remove("partialArgs") {
                Some(Value::Array(pieces)) => pieces,
                _ => Vec::new(),
            },
            arguments: match members.remove("args") {
                Some(arguments @ Value::Object(_)) => arguments,
                _ => Value::Object(Map::new()),
            },
        }
    }

    /// Returns `true` if this is a piece of a call that has already started.
    pub(super) fn is_piece(&self) -> bool {
        self.name.is_empty()
    }
}
