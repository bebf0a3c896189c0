//! The labels that clients give their sessions, as tags.

use std::collections::BTreeMap;

use crate::api_error::ApiError;

/// The start of the tags that hold labels of clients. It keeps them apart from tags with a meaning for a program, such as
/// the owner and the file of an agent.
const PREFIX: &str = "meta.";

/// The maximum number of labels.
const MAX_LABELS: usize = 32;

/// The maximum length of a label's name, in bytes.
const MAX_NAME: usize = 64;

/// The maximum length of a label's value, in bytes.
const MAX_VALUE: usize = 512;

/// Returns the labels as tags.
pub(crate) fn to_tags(
    metadata: &BTreeMap<String, String>,
) -> Result<impl Iterator<Item = (String, String)>, ApiError> {
    let is_valid = |(name, value): (&String, &String)| {
        !name.is_empty() && name.len() <= MAX_NAME && value.len() <= MAX_VALUE
    };
    if metadata.len() > MAX_LABELS || !metadata.iter().all(is_valid) {
        let message = "`metadata` has at most 32 members, with names of 1 to 64 bytes and values of up to 512 bytes";
        return Err(ApiError::invalid(message));
    }
    Ok(metadata.iter().map(|(name, value)| (format!("{PREFIX}{name}"), value.clone())))
}

/// Returns the labels among the tags of a session.
pub(crate) fn of_tags(tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let label = |(name, value): (&String, &String)| {
        Some((name.strip_prefix(PREFIX)?.to_owned(), value.clone()))
    };
    tags.iter().filter_map(label).collect()
}
