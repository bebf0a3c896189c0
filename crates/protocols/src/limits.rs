//! Limits of requests.

mod elements;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::MAX_ID_BYTES;
use helix_agents_core::json::{Json, MAX_DEPTH};
use helix_agents_core::session::CallRef;
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use elements::{each, members};

/// Limits of a request. A request beyond a limit is refused as a whole.
///
/// Decoding needs memory in proportion to the limits, never to the number of values in the body: what is not needed is
/// skipped, and counted before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestLimits {
    /// The maximum size of the body in bytes.
    pub body_bytes: usize,
    /// The maximum size of the text of the message that is read, in bytes.
    pub text_bytes: usize,
    /// The maximum size of one answer to a call, in bytes.
    pub answer_bytes: usize,
    /// The maximum size of the error text of one answer, in bytes.
    pub error_bytes: usize,
    /// The maximum number of files in the message that is read.
    pub files: usize,
    /// The maximum number of answers in one request.
    pub answers: usize,
    /// The maximum number of parts of the message that is read.
    pub parts: usize,
    /// The maximum size of the members that a client's program adds to a request, in bytes.
    pub extra_bytes: usize,
    /// The maximum size of the state that a client sends, in bytes.
    pub state_bytes: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            text_bytes: 1024 * 1024,
            answer_bytes: 1024 * 1024,
            error_bytes: 8 * 1024,
            files: 32,
            answers: 256,
            parts: 10_000,
            extra_bytes: 64 * 1024,
            state_bytes: 256 * 1024,
        }
    }
}

impl RequestLimits {
    /// Decodes the body of a request.
    pub(crate) fn decode<'b, T: Deserialize<'b>>(&self, body: &'b [u8]) -> Result<T> {
        self.check_body(body)?;
        parse(body)
    }

    /// Returns an error if a body is too large or nested too deeply.
    pub(crate) fn check_body(&self, body: &[u8]) -> Result<()> {
        check("the body", body.len(), self.body_bytes)?;
        check_depth(body)
    }
}

/// Parses JSON of a request whose depth was checked.
pub(crate) fn parse<'b, T: Deserialize<'b>>(json: &'b [u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| malformed(&error))
}

fn malformed(error: &serde_json::Error) -> Error {
    let message = "the body is not a request of this protocol";
    Error::new(ErrorCode::InputInvalid, message)
        .with_context("line", error.line())
        .with_context("column", error.column())
        .with_detail(error.to_string())
}

/// Returns an error if a size exceeds its limit.
pub(crate) fn check(what: &'static str, size: usize, limit: usize) -> Result<()> {
    if size <= limit {
        return Ok(());
    }
    let message = format!("{what} exceeds the limit of {limit}");
    Err(Error::new(ErrorCode::TooLarge, message).with_context("size", size))
}

/// The maximum length in bytes of a reference to a call: two ids and the character between them.
const MAX_CALL_BYTES: usize = 2 * MAX_ID_BYTES + 1;

/// Returns the reference of a call that a client names.
pub(crate) fn call_ref(text: &str) -> Result<CallRef> {
    if text.is_empty() || text.len() > MAX_CALL_BYTES {
        return Err(Error::new(ErrorCode::IdInvalid, "the id of a call is empty or too long"));
    }
    Ok(CallRef::from(text))
}

/// Returns an error if an id that a client chose is empty or too long.
pub(crate) fn check_id(what: &'static str, id: &str) -> Result<()> {
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        let message = format!("{what} is empty or longer than {MAX_ID_BYTES} bytes");
        return Err(Error::new(ErrorCode::IdInvalid, message));
    }
    Ok(())
}

/// Returns a value of a request as JSON that a log can contain.
pub(crate) fn recordable(value: Option<&RawValue>, limits: &RequestLimits) -> Result<Json> {
    let text = value.map_or("null", RawValue::get);
    check("the result of a call", text.len(), limits.answer_bytes)?;
    Json::parse(text).map_err(|_| invalid("the result of a call cannot be recorded"))
}

/// Returns the error of a request that is not valid.
pub(crate) fn invalid(message: &'static str) -> Error {
    Error::new(ErrorCode::InputInvalid, message)
}

/// Returns an error if the JSON text is nested too deeply. A value of the request may become part of a log, whose events
/// add levels of their own.
fn check_depth(body: &[u8]) -> Result<()> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let message = format!("the body is nested more than {MAX_DEPTH} levels deep");
            return Err(Error::new(ErrorCode::InputInvalid, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
