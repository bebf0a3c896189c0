//! Messages of a conversation with a model.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::id::{CallId, MessageId};
use crate::json::Json;
use crate::wire::WireCell;

pub(crate) mod construct;
mod layout;
mod media;

pub(crate) use layout::LayoutPart;
pub use layout::{ReplyLayout, ReplyPart};
pub use media::{Attachment, ContentPart, Media, MediaSource};

/// A message of the transcript, or the system prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The system prompt. It is never stored, but resolved and prepended for each model call.
    System {
        /// The text of the prompt.
        content: String,
    },
    /// A message of the user, or a correction by the framework.
    User(UserMessage),
    /// A reply of the model.
    Assistant(Arc<AssistantMessage>),
    /// The result of a tool call.
    Tool(ToolResultMessage),
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The id that the client gave the message. Front ends recognise a repeated or edited message by it. No model
    /// receives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    /// The text of the message.
    pub content: String,
    /// The images and files of the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Whether to hide the message from users. It is context for the model only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl UserMessage {
    /// Creates a visible message.
    pub fn new(content: impl Into<String>) -> Self {
        Self { id: None, content: content.into(), attachments: Vec::new(), hidden: false }
    }

    /// Creates a message that is context for the model and hidden from users.
    pub fn hidden(content: impl Into<String>) -> Self {
        Self { hidden: true, ..Self::new(content) }
    }

    /// Sets the id that the client gave the message.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds an image or another file after the text and the files so far.
    ///
    /// # Examples
    ///
    /// ```
    /// use helix_agents_core::message::{ContentPart, Media, UserMessage};
    ///
    /// let chart = Media::from_url("image/png", "https://example.com/chart.png");
    /// let message = UserMessage::new("What does this chart show?").attach(chart.clone());
    /// assert_eq!(
    ///     message.parts(),
    ///     [ContentPart::Text("What does this chart show?"), ContentPart::Media(&chart)]
    /// );
    /// ```
    #[must_use]
    pub fn attach(mut self, media: Media) -> Self {
        self.attachments.push(Attachment { at: self.content.len(), media });
        self
    }

    /// Adds text after the text and the files so far.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.content.push_str(text);
        self
    }
}

/// A reply of the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The text, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The tool calls, in the order in which the model made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The reasoning, if the provider disclosed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// The order of the parts and the data that their provider needs back. `None` if the reply is its reasoning, then
    /// its text, then its calls, without such data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Arc<ReplyLayout>>,
}

/// The result of a tool call, as read by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResultMessage {
    /// The id of the call.
    pub tool_call_id: CallId,
    /// The provider's id of the call, used in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<Arc<str>>,
    /// The tool name that the model used.
    pub tool_name: String,
    /// The result as JSON text.
    pub content: String,
    /// The images and files that the tool returned in addition to its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Media>,
    /// Whether the call failed. A successful tool may also return a member named `error`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The framework's id, unique within the session.
    pub id: CallId,
    /// The provider's id, only used in requests: some servers reuse ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<Arc<str>>,
    /// The tool name, as written by the model.
    pub name: Arc<str>,
    /// The arguments of the call.
    pub arguments: Arguments,
}

impl ToolCall {
    /// Returns the id to use in requests: the provider's id, if there is one.
    #[must_use]
    pub fn wire_id(&self) -> &str {
        self.provider_id.as_deref().unwrap_or_else(|| self.id.as_str())
    }
}

impl ToolResultMessage {
    /// Returns the id to use in requests: the provider's id, if there is one.
    #[must_use]
    pub fn wire_id(&self) -> &str {
        self.provider_id.as_deref().unwrap_or_else(|| self.tool_call_id.as_str())
    }
}

/// The arguments of a call: JSON, or text that is not valid JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// Valid JSON.
    Json(Json),
    /// Text that does not parse, or that cannot be read back. Such a call is never run.
    Malformed(String),
}

impl Arguments {
    /// Parses the arguments from a provider. Empty text means no arguments, as several servers send
    /// it. Unescaped control characters in strings, which small models write, are accepted.
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

    /// Returns the arguments, unless they are malformed.
    #[must_use]
    pub fn as_json(&self) -> Option<&Json> {
        match self {
            Self::Json(value) => Some(value),
            Self::Malformed(_) => None,
        }
    }

    /// Returns the arguments as the model wrote them.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Json(value) => value.text(),
            Self::Malformed(text) => text,
        }
    }

    /// Returns why syntactically valid JSON cannot be read as a value, for instance because a
    /// number is too large. The error does not quote the model's text.
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

/// Escapes the control characters inside of JSON strings. Returns `None` if there are none.
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

/// Reasoning that the provider disclosed. Signatures and hidden reasoning are part of the
/// [layout](AssistantMessage::layout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Thinking {
    /// The reasoning text.
    pub content: String,
    /// The signature in a log of an earlier build. Adapters do not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Thinking {
    /// Creates reasoning with this text.
    pub fn new(content: impl Into<String>) -> Self {
        Self { content: content.into(), signature: None }
    }
}

/// A message of the transcript: immutable, shared, and encoded for its provider at most once.
///
/// A transcript only grows. An adapter that caches the encoded messages here encodes each message
/// once per session instead of once per step.
#[derive(Clone)]
pub struct SharedMessage(Arc<Shared>);

struct Shared {
    message: Message,
    /// The number of the turn, or 0 if the message is not part of a session.
    turn: u32,
    wire: WireCell,
}

impl SharedMessage {
    /// Creates a shared message.
    #[must_use]
    pub fn new(message: Message) -> Self {
        Self::of_turn(0, message)
    }

    /// Creates a shared message of a turn of a session.
    pub(crate) fn of_turn(turn: u32, message: Message) -> Self {
        Self(Arc::new(Shared { message, turn, wire: WireCell::default() }))
    }

    /// Returns the number of the turn in which the message entered the transcript of its session, starting at 1.
    /// Returns 0 for a message outside of a turn.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.0.turn
    }

    /// Returns the message encoded as `encoding`. The first call runs `encode`; later calls use the
    /// cached bytes. If a session changes its provider, the second encoding is not cached.
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
