//! Identifiers in the form that APIs with a fixed alphabet accept.

use std::borrow::Cow;

/// The maximum length of an identifier in bytes.
const MAX_BYTES: usize = 64;

/// Returns the id of a call for an API that accepts only letters, digits, `_` and `-`. Other providers have ids with other
/// characters. The result depends only on the id, so that a call and its result match.
pub(crate) fn strict(id: &str) -> Cow<'_, str> {
    let is_permitted =
        |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    if (1..=MAX_BYTES).contains(&id.len()) && id.chars().all(is_permitted) {
        return Cow::Borrowed(id);
    }
    let replaced =
        id.chars().map(|character| if is_permitted(character) { character } else { '_' });
    shortened(&replaced.collect::<String>(), id)
}

/// Returns a text of at most 64 bytes. A longer one is cut and gets a checksum.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_BYTES { Cow::Borrowed(text) } else { shortened(text, text) }
}

fn shortened(text: &str, original: &str) -> Cow<'static, str> {
    let checksum = crc32fast::hash(original.as_bytes());
    let end = text.floor_char_boundary(MAX_BYTES - 9);
    Cow::Owned(format!("{}-{checksum:08x}", text.get(..end).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
