//! What a model, a tool or a web page wrote must not move the cursor, change the title or answer in
//! the person's name: of control characters only line ends, tabs and our own colours pass.

use crate::text::turns;

/// What stands out.
pub(crate) const BOLD: &str = "\u{1b}[1m";
/// What matters less.
pub(crate) const DIM: &str = "\u{1b}[2m";
/// What went well.
pub(crate) const GREEN: &str = "\u{1b}[32m";
/// What went wrong.
pub(crate) const RED: &str = "\u{1b}[31m";
/// The end of each.
pub(crate) const RESET: &str = "\u{1b}[0m";

const OURS: [&str; 5] = [BOLD, DIM, GREEN, RED, RESET];

/// The text with control characters made visible, but for our own colours if `colors`. A carriage
/// return is left out: most belong to a line end.
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

/// The text with all control characters made visible: for what others wrote.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter_map(visible).collect()
}

fn visible(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => Some(c),
        '\r' => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        c if c.is_control() || turns(c) => Some(char::REPLACEMENT_CHARACTER),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests;
