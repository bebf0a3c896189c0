//! Small things about text for people.

use std::borrow::Cow;
use std::time::Duration;

/// One line of at most `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if is_no_text(c) { ' ' } else { c }).collect();
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// The text in one line: its line ends, and all else that is no text, as they are escaped in Rust.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_no_text) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_no_text(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    Cow::Owned(line)
}

/// Whether it does something to the text around it: a control character, or one that turns the
/// direction.
pub(crate) fn is_no_text(c: char) -> bool {
    c.is_control() || turns(c)
}

/// Whether it turns the direction of the text around it, so that this reads as another one.
pub(crate) fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `340 ms`, `4.2 s`, `2 min 05 s`.
pub(crate) fn duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, duration.subsec_millis() / 100),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// `1 step`, `2 steps`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// An argument as a shell takes it.
pub(crate) fn quoted(argument: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return Cow::Borrowed(argument);
    }
    Cow::Owned(format!("'{}'", argument.replace('\'', r"'\''")))
}

/// `12 bytes`, `3.4 kB`, `5.6 GB`.
pub(crate) fn bytes(number: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(size, _)| number >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", number / size, number % size * 10 / size),
        None => count(number, "byte"),
    }
}

/// A table whose columns are as wide as they have to be. The last one is as it is. Each cell is in
/// one line, whoever wrote it.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let head = head.map(Cow::Borrowed);
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(|cell| one_line(cell))).collect();
    let all = || std::iter::once(&head).chain(&rows);
    let widths: Vec<usize> = (0..N)
        .map(|column| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    let line = |row: &[Cow<'_, str>; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests;
