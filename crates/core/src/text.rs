//! Text of unknown length, quoted up to a limit.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The most bytes that an error or a correction quotes of a value.
pub const MAX_QUOTED: usize = 1_000;

/// The most bytes that one quotes of a name that it did not expect.
pub const MAX_NAME: usize = 100;

/// The beginning of a text, of at most `most` bytes and a mark that there is more.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    Cow::Owned(format!("{kept}…"))
}

/// The same of what is displayed. What comes after the excerpt is not written.
pub fn excerpt_of(value: impl fmt::Display, most: usize) -> String {
    let mut excerpt = Excerpt { text: String::new(), most };
    let cut = write!(excerpt, "{value}").is_err();
    let mut text = excerpt.text;
    if cut {
        text.push('…');
    }
    text
}

/// Takes so many bytes and refuses what comes after them.
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
