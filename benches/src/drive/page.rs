//! The tables of the guide's performance page: one per group that has a place on the page.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::peers::Peers;
use super::report::{Figure, Report};
use super::table::number;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/performance.md");

const END: &str = "<!-- end -->";

/// The maximum number of other frameworks in a row.
const OTHERS: usize = 3;

/// Writes the tables of these groups to the page.
pub(super) fn write(groups: &[&str], report: &Report) -> Result<()> {
    let path = Path::new(PAGE);
    let page = std::fs::read_to_string(path).context("the performance page is unreadable")?;
    let written = with_tables(page, groups, report, &Peers::load()?);
    std::fs::write(path, written).context("the performance page could not be written")
}

/// Returns the page with the tables of these groups.
pub(super) fn with_tables(
    mut page: String,
    groups: &[&str],
    report: &Report,
    peers: &Peers,
) -> String {
    for group in groups {
        let begin = format!("<!-- begin: written by `cargo xtask bench {group} --write` -->");
        let Some(at) = page.find(&begin).map(|at| at + begin.len()) else { continue };
        let Some(length) = page.get(at..).and_then(|rest| rest.find(END)) else { continue };
        page.replace_range(at..at + length, &format!("\n{}", table(group, report, peers)));
    }
    page
}

/// Returns a table with a row per figure and a column per subject.
fn table(group: &str, report: &Report, peers: &Peers) -> String {
    let key_of = |figure: &Figure| {
        let key = figure.key.strip_prefix(group)?.strip_prefix('.')?;
        Some((key.to_owned(), figure.key.clone()))
    };
    let figures: Vec<&Figure> =
        report.figures.iter().filter(|figure| key_of(figure).is_some()).collect();
    let mut subjects: Vec<&str> = Vec::new();
    let mut keys: Vec<(String, String)> = Vec::new();
    for figure in &figures {
        if !subjects.contains(&figure.subject.as_str()) {
            subjects.push(&figure.subject);
        }
        keys.extend(key_of(figure).filter(|key| !keys.contains(key)));
    }
    let mut text = format!("| | {} | aim | others |\n", subjects.join(" | "));
    let _ = writeln!(text, "|---|{}---|---|", "---|".repeat(subjects.len()));
    for (name, key) in &keys {
        let row: Vec<&Figure> =
            figures.iter().copied().filter(|figure| figure.key == *key).collect();
        let unit = row.first().map_or("", |figure| figure.unit);
        let name = if unit.is_empty() { name.clone() } else { format!("{name}, {unit}") };
        let cell = |subject: &&str| {
            row.iter().find(|figure| figure.subject == **subject).map(|figure| cell(figure))
        };
        let cells: Vec<String> =
            subjects.iter().map(|subject| cell(subject).unwrap_or_default()).collect();
        let others = peers.of(key).map(|figure| figure.named(OTHERS)).unwrap_or_default();
        let _ = writeln!(text, "| {name} | {} | {} | {others} |", cells.join(" | "), aim(&row));
    }
    text
}

/// Formats a figure: its value, its ratio to the baseline, and whether it meets its aim.
fn cell(figure: &Figure) -> String {
    let value = with_commas(&number(figure.value));
    let ratio = figure.ratio.map(|ratio| format!(" ({ratio:.2} ×)")).unwrap_or_default();
    match &figure.aim {
        None => format!("{value}{ratio}"),
        Some(aim) if aim.met => format!("{value}{ratio} ✓"),
        Some(_) => format!("**{value}{ratio} ✗**"),
    }
}

/// Adds thousands separators to a number without a fraction.
fn with_commas(number: &str) -> String {
    if number.contains('.') {
        return number.to_owned();
    }
    let digits = number.char_indices().map(|(at, digit)| {
        let comma = at > 0 && (number.len() - at).is_multiple_of(3) && !number[..at].ends_with('-');
        format!("{}{digit}", if comma { "," } else { "" })
    });
    digits.collect()
}

/// Returns the aims of a row's figures.
fn aim(row: &[&Figure]) -> String {
    let mut aims: Vec<&str> = Vec::new();
    for aim in row.iter().filter_map(|figure| figure.aim.as_ref()) {
        if !aims.contains(&aim.text.trim()) {
            aims.push(aim.text.trim());
        }
    }
    aims.join(", ")
}

#[cfg(test)]
mod tests;
