//! Checks that ARCHITECTURE.md names every crate, and no crate that does not exist.

use crate::workspace::name_matches;

/// Checks both directions. `helix-agents-store-*` in the text matches all crates that start so.
pub(super) fn check(text: &str, crates: &[&str]) -> Vec<String> {
    let text = text.replace('\\', ""); // Markdown may escape the star
    let named: Vec<&str> =
        text.split(|letter: char| !is_name(letter)).map(without_markup).collect();
    let gone = named
        .iter()
        .filter(|name| name.starts_with("helix-agents"))
        .filter(|name| !crates.iter().any(|package| name_matches(name, package)))
        .map(|name| format!("ARCHITECTURE.md: names {name}, which does not exist"));
    let missing = crates
        .iter()
        .filter(|package| !named.iter().any(|name| name_matches(name, package)))
        .map(|package| format!("ARCHITECTURE.md: does not name {package}"));
    let mut complaints: Vec<String> = gone.chain(missing).collect();
    complaints.sort();
    complaints.dedup();
    complaints
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '*'
}

/// Returns `**a-b**` without its stars, and `a-*` with its one.
fn without_markup(word: &str) -> &str {
    let word = word.trim_start_matches('*');
    match word.find("-*") {
        Some(dash) => word.get(..dash + 2).unwrap_or(word),
        None => word.trim_end_matches('*'),
    }
}
