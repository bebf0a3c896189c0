//! Helpers for text output.

use std::borrow::Cow;

pub(crate) use helix_agents::tools::text::{one_line, shortened};

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
