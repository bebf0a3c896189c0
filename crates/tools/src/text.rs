//! Text from untrusted sources in one line: shortened, or with escaped control characters.

use std::borrow::Cow;

/// Shortens a text to one line of at most `most` characters.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if is_control_like(c) { ' ' } else { c }).collect();
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Escapes a text to one line. Line ends and other control characters are escaped as in Rust.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control_like) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control_like(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    Cow::Owned(line)
}

/// Returns `true` for control characters and characters that change the text direction.
#[must_use]
pub fn is_control_like(c: char) -> bool {
    c.is_control() || changes_direction(c)
}

/// Returns `true` if the character changes the text direction, which can disguise the text around it.
#[must_use]
pub fn changes_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests;
