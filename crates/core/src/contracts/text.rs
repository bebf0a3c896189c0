//! Excerpts of text of unknown length.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The maximum number of bytes that an error or a correction quotes of a value.
pub const MAX_QUOTED: usize = 1_000;

/// The maximum number of bytes that an error or a correction quotes of an unexpected name.
pub const MAX_NAME: usize = 100;

/// Returns the beginning of a text, at most `most` bytes and an ellipsis if the text is longer.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    Cow::Owned(format!("{kept}…"))
}

/// Returns an excerpt of a displayed value. The rest of the value is not formatted.
pub fn excerpt_of(value: impl fmt::Display, most: usize) -> String {
    let mut excerpt = Excerpt { text: String::new(), most };
    let cut = write!(excerpt, "{value}").is_err();
    let mut text = excerpt.text;
    if cut {
        text.push('…');
    }
    text
}

/// A writer that accepts a number of bytes and fails afterwards.
struct Excerpt {
    text: String,
    most: usize,
}

impl fmt::Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.most - self.text.len();
        let kept = text.get(..text.floor_char_boundary(room.min(text.len()))).unwrap_or_default();
        self.text.push_str(kept);
        if kept.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests;
