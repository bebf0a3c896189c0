//! Reasoning in `reasoning_details`: with signatures or encrypted, to be sent back unchanged. OpenRouter sends it.

use helix_agents_core::json::Json;
use helix_agents_core::llm::ReplyBuilder;
use helix_agents_core::message::{AssistantMessage, ReplyPart};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json_writer::Object;

/// The maximum number of details of a reply.
const MAX_DETAILS: usize = 1000;

/// The members that arrive in pieces. Of other members, the last value counts.
const PIECES: [&str; 2] = ["text", "summary"];

/// The details of a reply, while they arrive.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Map<String, Value>>);

impl Details {
    /// Adds the details of a chunk. Returns `false` if there are too many.
    pub(super) fn add(&mut self, raw: &RawValue) -> bool {
        let Ok(pieces) = serde_json::from_str::<Vec<Map<String, Value>>>(raw.get()) else {
            // Other servers have members of this name with other contents.
            return true;
        };
        for piece in pieces {
            match self.0.iter().rposition(|detail| continues(detail, &piece)) {
                Some(at) => {
                    if let Some(detail) = self.0.get_mut(at) {
                        merge(detail, piece);
                    }
                }
                None if self.0.len() >= MAX_DETAILS => return false,
                None => {
                    let mut detail = Map::new();
                    merge(&mut detail, piece);
                    self.0.push(detail);
                }
            }
        }
        true
    }

    /// Adds the reasoning to the parts of a reply. `thinking` is the reasoning as text, which the details repeat.
    pub(super) fn add_to(self, thinking: &str, parts: &mut ReplyBuilder) {
        let text: String = self.0.iter().map(shown).collect();
        if text != thinking {
            // The details have a text of their own, so they are kept whole.
            parts.thinking(thinking, None);
            self.0.into_iter().for_each(|detail| parts.opaque(Value::Object(detail).into()));
            return;
        }
        for mut detail in self.0 {
            let text = shown_member(&detail).and_then(|member| detail.remove(member));
            let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
            parts.thinking(text, Some(Value::Object(detail).into()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns `true` if a piece belongs to a detail. Models of some vendors give all details the same index.
fn continues(detail: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let same = |name: &str| detail.get(name) == piece.get(name);
    let id = |members: &Map<String, Value>| members.get("id").filter(|id| !id.is_null()).cloned();
    let has_same_id = match (id(detail), id(piece)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    // Without an index, only texts arrive in pieces.
    same("type")
        && same("index")
        && has_same_id
        && (piece.contains_key("index") || shown_member(piece).is_some())
}

/// Adds the pieces of a detail to the detail.
fn merge(detail: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (detail.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(all)), Value::String(more)) if PIECES.contains(&&*key) => {
                all.push_str(&more);
            }
            (_, value) => {
                detail.insert(key, value);
            }
        }
    }
}

/// Returns the member with the text that people can read.
fn shown_member(detail: &Map<String, Value>) -> Option<&'static str> {
    match detail.get("type").and_then(Value::as_str) {
        Some("reasoning.text") => Some("text"),
        Some("reasoning.summary") => Some("summary"),
        _ => None,
    }
}

fn shown(detail: &Map<String, Value>) -> &str {
    let text = shown_member(detail).and_then(|member| detail.get(member));
    text.and_then(Value::as_str).unwrap_or_default()
}

/// Writes the details of a reply that is sent back, if it has any.
pub(super) fn encode(message: &AssistantMessage, object: &mut Object<'_>) {
    let details: Vec<Value> = message.parts().filter_map(detail).collect();
    if !details.is_empty() {
        object.member("reasoning_details", &details);
    }
}

fn detail(part: ReplyPart<'_>) -> Option<Value> {
    match part {
        ReplyPart::Opaque { data } => Some(data.to_value()),
        ReplyPart::Thinking { text, data: Some(data) } => with_text(text, data),
        _ => None,
    }
}

fn with_text(text: &str, data: &Json) -> Option<Value> {
    let Value::Object(mut detail) = data.to_value() else { return None };
    if let Some(member) = shown_member(&detail).filter(|_| !text.is_empty()) {
        detail.insert(member.to_owned(), text.into());
    }
    Some(Value::Object(detail))
}
