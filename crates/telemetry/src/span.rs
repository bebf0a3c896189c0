//! Spans as data.

use std::borrow::Cow;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::trace::{SpanId, TraceId};

/// A completed operation of a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// The id of the trace.
    pub trace: TraceId,
    /// The id of the span.
    pub id: SpanId,
    /// The id of the parent span. `None` for a root of its trace.
    pub parent: Option<SpanId>,
    /// The name, such as `chat gpt-4.1`.
    pub name: String,
    /// The kind.
    pub kind: SpanKind,
    /// The start of the operation.
    pub start: Timestamp,
    /// The end of the operation.
    pub end: Timestamp,
    /// The attributes. A name occurs once.
    pub attributes: Vec<(Cow<'static, str>, Value)>,
    /// The events within the operation.
    pub events: Vec<SpanEvent>,
    /// The spans that are related to this one.
    pub links: Vec<Link>,
    /// The description of the error, if the operation failed. It contains no content unless content is recorded.
    pub error: Option<String>,
}

impl Span {
    pub(crate) fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        self.attributes.push((name.into(), value.into()));
    }

    /// Sets an attribute if there is a value.
    pub(crate) fn set_some(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Returns the value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the value of an attribute that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the approximate size of the span, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let attributes = |attributes: &[(Cow<'static, str>, Value)]| -> usize {
            attributes.iter().map(|(name, value)| name.len() + value.bytes()).sum()
        };
        let events: usize = self.events.iter().map(|event| attributes(&event.attributes)).sum();
        size_of::<Self>() + self.name.len() + attributes(&self.attributes) + events
    }
}

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanKind {
    /// An operation within the application.
    Internal,
    /// A request to another service.
    Client,
}

/// An event within a span.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SpanEvent {
    /// The name.
    pub name: &'static str,
    /// The time.
    pub at: Timestamp,
    /// The attributes.
    pub attributes: Vec<(Cow<'static, str>, Value)>,
}

/// A link to another span.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The trace of the other span.
    pub trace: TraceId,
    /// The other span.
    pub span: SpanId,
    /// The relation, the value of the attribute `helix.link`: `resumed_from`, `took_over`, `requested_by` or `answered_by`.
    pub relation: &'static str,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A text.
    String(String),
    /// A number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A list of texts.
    Strings(Vec<String>),
}

impl Value {
    fn bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Strings(texts) => texts.iter().map(String::len).sum(),
            Self::Int(_) | Self::Float(_) | Self::Bool(_) => size_of::<f64>(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        Self::Strings(texts)
    }
}
