//! The conversation as the model sees it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::id::CallId;
use crate::json::Json;
use crate::wire::WireCell;

/// One message of a transcript, or the system prompt before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The prompt. Never stored: it is resolved and put in front for each model call.
    System {
        /// The text.
        content: String,
    },
    /// What a person (or the framework, as a correction) says.
    User(UserMessage),
    /// What the model answered.
    Assistant(Arc<AssistantMessage>),
    /// The result of one tool call.
    Tool(ToolResultMessage),
}

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The text.
    pub content: String,
    /// Context for the model that a person should not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl UserMessage {
    /// A visible message.
    pub fn new(content: impl Into<String>) -> Self {
        Self { content: content.into(), hidden: false }
    }
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The text, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The calls, in the order in which the model made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The reasoning that the provider disclosed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
}

/// The result of one tool call, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResultMessage {
    /// The call that this answers.
    pub tool_call_id: CallId,
    /// The provider's id of that call, for the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<Arc<str>>,
    /// The name under which the model called it.
    pub tool_name: String,
    /// JSON text.
    pub content: String,
    /// Whether the call failed. A tool may return an `error` of its own without having failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// One call as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ours, unique within the session.
    pub id: CallId,
    /// The provider's, for the wire only: some servers reuse theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<Arc<str>>,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments.
    pub arguments: Arguments,
}

impl ToolCall {
    /// The id to put on the wire: the provider's own if it gave one.
    #[must_use]
    pub fn wire_id(&self) -> &str {
        self.provider_id.as_deref().unwrap_or_else(|| self.id.as_str())
    }
}

impl ToolResultMessage {
    /// The id to put on the wire: the provider's own if it gave one.
    #[must_use]
    pub fn wire_id(&self) -> &str {
        self.provider_id.as_deref().unwrap_or_else(|| self.tool_call_id.as_str())
    }
}

/// Arguments of a call: JSON, or the text that should have been.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// What the model wrote.
    Json(Json),
    /// Text that does not parse, or that no reader accepts. Such a call is never run.
    Malformed(String),
}

impl Arguments {
    /// Parses what a provider sent. Nothing at all means no arguments, as several servers send it.
    /// Control characters in strings, which JSON wants escaped and small models write as they are,
    /// are taken for what they are.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Json(Json::empty_object());
        }
        let parsed = Json::parse(text).or_else(|error| match escaped_controls(text) {
            Some(escaped) => Json::parse(&escaped),
            None => Err(error),
        });
        parsed.map_or_else(|_| Self::Malformed(text.to_owned()), Self::Json)
    }

    /// The arguments, unless they did not parse.
    #[must_use]
    pub fn as_json(&self) -> Option<&Json> {
        match self {
            Self::Json(value) => Some(value),
            Self::Malformed(_) => None,
        }
    }

    /// Why arguments that have the form of JSON are no value: a number that is too large, say. None of
    /// what the model wrote is in it.
    pub(crate) fn unreadable(&self) -> Option<serde_json::Error> {
        let Self::Malformed(text) = self else { return None };
        let has_form = serde_json::from_str::<&RawValue>(text.trim()).is_ok();
        has_form.then(|| Json::parse(text).err()).flatten()
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self::Json(value.into())
    }
}

/// The text with the control characters inside of its strings escaped, if there are any.
fn escaped_controls(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 8);
    let (mut in_string, mut after_backslash, mut found) = (false, false, false);
    for character in text.chars() {
        if in_string && character.is_ascii_control() {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
            found = true;
        } else {
            out.push(character);
        }
        match character {
            '"' if !after_backslash => in_string = !in_string,
            _ => {}
        }
        after_backslash = in_string && character == '\\' && !after_backslash;
    }
    found.then_some(out)
}

/// Reasoning that a model disclosed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The text.
    pub content: String,
    /// What the provider wants back unchanged to accept the text again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A message of a transcript: immutable, shared, and encoded for its provider at most once.
///
/// A transcript only grows, so an adapter that keeps the bytes of a message here pays for each
/// message once per session instead of once per step.
#[derive(Clone)]
pub struct SharedMessage(Arc<Shared>);

struct Shared {
    message: Message,
    wire: WireCell,
}

impl SharedMessage {
    /// Takes a message into sharing.
    #[must_use]
    pub fn new(message: Message) -> Self {
        Self(Arc::new(Shared { message, wire: WireCell::default() }))
    }

    /// This message's bytes in `encoding`, made by `encode` the first time. A session that changes
    /// its provider in the middle is encoded anew for the second one.
    pub fn encoded(
        &self,
        encoding: &'static str,
        encode: impl Fn(&Message, &mut Vec<u8>),
    ) -> Cow<'_, [u8]> {
        self.0.wire.get(encoding, |bytes| encode(&self.0.message, bytes))
    }
}

impl Deref for SharedMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.0.message
    }
}

impl From<Message> for SharedMessage {
    fn from(message: Message) -> Self {
        Self::new(message)
    }
}

impl PartialEq for SharedMessage {
    fn eq(&self, other: &Self) -> bool {
        self.0.message == other.0.message
    }
}

impl fmt::Debug for SharedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.message.fmt(f)
    }
}

#[cfg(test)]
mod tests;
