//! The limits of a session's tags.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorCode, Result};
use crate::id::has_control;

/// The maximum number of tags of a session.
pub const MAX_TAGS: usize = 64;

/// The maximum length of a tag's key, in bytes.
pub const MAX_TAG_KEY_BYTES: usize = 128;

/// The maximum length of a tag's value, in bytes. The key, the value and the id of a session
/// together fit into an entry of an index in PostgreSQL.
pub const MAX_TAG_VALUE_BYTES: usize = 2048;

/// Checks the tags of a new session or of a filter.
pub(super) fn check(tags: &BTreeMap<String, String>) -> Result<()> {
    if tags.len() > MAX_TAGS {
        return Err(Error::new(ErrorCode::TagInvalid, "there are more than 64 tags")
            .with_context("tags", tags.len()));
    }
    tags.iter().try_for_each(|(key, value)| check_tag(key, value))
}

fn check_tag(key: &str, value: &str) -> Result<()> {
    let problem = if key.is_empty() {
        "the key of a tag is empty"
    } else if key.len() > MAX_TAG_KEY_BYTES {
        "the key of a tag is longer than 128 bytes"
    } else if has_control(key) {
        "the key of a tag contains a control character"
    } else {
        return check_value(key, value);
    };
    Err(Error::new(ErrorCode::TagInvalid, problem))
}

fn check_value(key: &str, value: &str) -> Result<()> {
    let problem = if value.len() > MAX_TAG_VALUE_BYTES {
        "the value of a tag is longer than 2048 bytes"
    } else if value.contains('\0') {
        // PostgreSQL cannot store this character in a text.
        "the value of a tag contains a NUL character"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorCode::TagInvalid, problem).with_context("key", key))
}

#[cfg(test)]
mod tests;
