//! [W3C Trace Context](https://www.w3.org/TR/trace-context/): the trace that an operation belongs to, and its parent span.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::id::{CallId, RunId, SessionId};

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// Returns the trace id of a turn that was given no trace. It is derived from the session id and the turn number, so
    /// every process computes the same id. A turn that is repeated after a rewind has the same id.
    #[must_use]
    pub fn of_turn(session: &SessionId, turn: u32) -> Self {
        let digest = Sha256::digest(format!("{session}/turn/{turn}"));
        Self(first_bytes(&digest))
    }

    /// Returns the id of a trace that contains all turns of a session.
    #[must_use]
    pub fn of_session(session: &SessionId) -> Self {
        Self(first_bytes(&Sha256::digest(session.as_str())))
    }

    /// Returns the id as bytes, in the order of its hexadecimal digits.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The id of a span, unique within its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId([u8; 8]);

impl SpanId {
    /// Returns the span id of a session's operation. It is derived from recorded ids, so every process that continues the
    /// session computes the same id.
    #[must_use]
    pub fn of(session: &SessionId, operation: Operation<'_>) -> Self {
        let key = match operation {
            Operation::Run(run) => format!("run/{run}"),
            Operation::ModelCall { step } => format!("model/{step}"),
            Operation::ToolCall(call) => format!("call/{call}"),
            Operation::Wait(call) => format!("wait/{call}"),
        };
        Self(first_bytes(&Sha256::digest(format!("helix/1\n{session}\n{key}"))))
    }

    /// Returns the id as bytes, in the order of its hexadecimal digits.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// An operation of a session that has a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation<'a> {
    /// A run.
    Run(&'a RunId),
    /// The model call of a step.
    ModelCall {
        /// The number of the step in its session.
        step: u32,
    },
    /// A tool call.
    ToolCall(&'a CallId),
    /// The wait of a call for an answer.
    Wait(&'a CallId),
}

/// The trace and the parent span of an operation, as in a `traceparent` header.
///
/// # Examples
///
/// ```
/// use helix_agents_core::trace::TraceParent;
///
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let parent: TraceParent = header.parse()?;
/// assert!(parent.is_sampled());
/// assert_eq!(parent.span().to_string(), "00f067aa0ba902b7");
/// assert_eq!(parent.to_string(), header);
/// # Ok::<(), helix_agents_core::trace::InvalidTraceParent>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace: TraceId,
    span: SpanId,
    sampled: bool,
}

impl TraceParent {
    /// Creates a context. `sampled` tells whether the caller samples the trace.
    #[must_use]
    pub fn new(trace: TraceId, span: SpanId, sampled: bool) -> Self {
        Self { trace, span, sampled }
    }

    /// Returns the trace id.
    #[must_use]
    pub fn trace(&self) -> TraceId {
        self.trace
    }

    /// Returns the id of the parent span.
    #[must_use]
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// Returns `true` if the caller samples the trace: the flag `sampled`.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Replaces the parent span.
    #[must_use]
    pub fn with_span(self, span: SpanId) -> Self {
        Self { span, ..self }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    /// Parses the value of a header. A later version of the format may have further fields, which are ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or(InvalidTraceParent(()))
    }
}

fn parse(text: &str) -> Option<TraceParent> {
    let mut fields = text.split('-');
    let [version] = bytes(fields.next()?)?;
    let (trace, span) = (bytes(fields.next()?)?, bytes(fields.next()?)?);
    let [flags] = bytes(fields.next()?)?;
    let has_more = fields.next().is_some();
    if version == 0xff || version == 0 && has_more || trace == [0; 16] || span == [0; 8] {
        return None;
    }
    Some(TraceParent::new(TraceId(trace), SpanId(span), flags & 1 == 1))
}

/// Parses lower-case hexadecimal digits.
fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * N || !digits.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Returns the first bytes of a digest. An id of zeros would be invalid, but that is too unlikely to handle.
fn first_bytes<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(digest).for_each(|(byte, given)| *byte = *given);
    bytes
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The error of a text that is not a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTraceParent(());

impl fmt::Display for InvalidTraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid traceparent: expected 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, in lower case")
    }
}

impl std::error::Error for InvalidTraceParent {}

#[cfg(test)]
mod tests;
