//! Reads texts and JSON values from the command line or from standard input.

use std::io::Read as _;

use helix_agents::error::{Error, ErrorCode, Result};
use serde_json::Value;

/// The maximum size of standard input in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Parses a JSON value from an argument, or from standard input if the argument is `-`.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if the text is not JSON. `what` names the value in the
/// message.
pub(crate) fn json(argument: &str, what: &str) -> Result<Value> {
    let read = if argument == "-" { Some(standard_input(what)?) } else { None };
    value(read.as_deref().unwrap_or(argument), what)
}

/// Parses a JSON value.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if the text is not JSON. `what` names the value in the
/// message.
pub(crate) fn value(text: &str, what: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let hint = match text.trim_start().chars().next() {
            None => " (the text is empty)",
            Some('{' | '[' | '"' | '-' | '0'..='9') => "",
            Some(_) => " (a string needs double quotes)",
        };
        Error::new(ErrorCode::InputInvalid, format!("{what}: not valid JSON: {error}{hint}"))
    })
}

/// Reads standard input to its end.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if it cannot be read, is too large or is not UTF-8.
pub(crate) fn standard_input(what: &str) -> Result<String> {
    let invalid =
        |problem: String| Error::new(ErrorCode::InputInvalid, format!("{what} {problem}"));
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| invalid(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid(format!("is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| invalid("is not valid UTF-8".to_owned()))
}
