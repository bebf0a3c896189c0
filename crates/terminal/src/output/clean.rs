//! Sanitizes text for a terminal. Text of a model, a tool or a web page must not move the cursor, change
//! the title or type input for the user: only line ends, tabs and the program's own colours pass.

use helix_agents_tools::text::changes_direction;

/// The escape sequence of bold text.
pub(crate) const BOLD: &str = "\u{1b}[1m";
/// The escape sequence of dim text.
pub(crate) const DIM: &str = "\u{1b}[2m";
/// The escape sequence of green text.
pub(crate) const GREEN: &str = "\u{1b}[32m";
/// The escape sequence of red text.
pub(crate) const RED: &str = "\u{1b}[31m";
/// The escape sequence that resets the style.
pub(crate) const RESET: &str = "\u{1b}[0m";

const OURS: [&str; 5] = [BOLD, DIM, GREEN, RED, RESET];

/// Makes control characters visible, except for the program's own colours if `colors`. Carriage returns
/// are dropped, because most belong to a line end.
pub(super) fn clean(text: &str, colors: bool) -> String {
    if !colors {
        return plain(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let ours = OURS.into_iter().find_map(|ours| Some((ours, rest.strip_prefix(ours)?)));
        if let Some((ours, after)) = ours {
            cleaned.push_str(ours);
            rest = after;
        } else {
            cleaned.extend(visible(c));
            rest = rest.strip_prefix(c).unwrap_or_default();
        }
    }
    cleaned
}

/// Makes all control characters visible, for untrusted text.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter_map(visible).collect()
}

fn visible(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => Some(c),
        '\r' => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        c if c.is_control() || changes_direction(c) => Some(char::REPLACEMENT_CHARACTER),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests;
