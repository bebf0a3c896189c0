//! Texts and values that are given on the command line, or on standard input.

use std::io::Read as _;

use helix_agents::error::{Error, ErrorCode, Result};
use serde_json::Value;

/// The most bytes of what is given on standard input.
const MOST_BYTES: u64 = 1024 * 1024;

/// A JSON value; `-` stands for what is on standard input.
///
/// # Errors
/// [`ErrorCode::InputInvalid`] if it is none; `what` says what it is for.
pub(crate) fn json(given: &str, what: &str) -> Result<Value> {
    let read = if given == "-" { Some(standard_input(what)?) } else { None };
    value(read.as_deref().unwrap_or(given), what)
}

/// The JSON value that a text is.
///
/// # Errors
/// Likewise.
pub(crate) fn value(text: &str, what: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let hint = if text.trim().is_empty() { "there is nothing" } else { "a text needs quotes" };
        Error::new(ErrorCode::InputInvalid, format!("{what}: this is not JSON: {error} ({hint})"))
    })
}

/// All of standard input.
///
/// # Errors
/// [`ErrorCode::InputInvalid`] if it cannot be read, is too large or no text.
pub(crate) fn standard_input(what: &str) -> Result<String> {
    let invalid =
        |problem: String| Error::new(ErrorCode::InputInvalid, format!("{what} {problem}"));
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| invalid(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(invalid(format!("is larger than {MOST_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| invalid("is not text in UTF-8".to_owned()))
}
