//! Helpers for text output.

use std::borrow::Cow;
use std::time::Duration;

/// Shortens a text to one line of at most `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if is_control_like(c) { ' ' } else { c }).collect();
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Escapes a text to one line. Line ends and other control characters are escaped as in Rust.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
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
pub(crate) fn is_control_like(c: char) -> bool {
    c.is_control() || changes_direction(c)
}

/// Returns `true` if the character changes the text direction, which can disguise the text around it.
pub(crate) fn changes_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats a duration as `340 ms`, `4.2 s` or `2 min 05 s`.
pub(crate) fn duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, duration.subsec_millis() / 100),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// Formats a count as `1 step` or `2 steps`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Quotes an argument for a shell.
pub(crate) fn quoted(argument: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return Cow::Borrowed(argument);
    }
    Cow::Owned(format!("'{}'", argument.replace('\'', r"'\''")))
}

/// Formats a size as `12 bytes`, `3.4 kB` or `5.6 GB`.
pub(crate) fn bytes(number: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(size, _)| number >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", number / size, number % size * 10 / size),
        None => count(number, "byte"),
    }
}

/// Formats a table with aligned columns. Each cell is escaped to one line.
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
