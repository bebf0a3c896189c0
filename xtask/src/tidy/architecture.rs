//! ARCHITECTURE.md names every crate, and no crate that is gone.

use crate::workspace::name_matches;

/// Both ways round. `helix-agents-store-*` in the text stands for all crates that start so.
pub(super) fn check(text: &str, crates: &[&str]) -> Vec<String> {
    let text = text.replace('\\', ""); // Markdown may escape the star
    let named: Vec<&str> = text.split(|it: char| !is_name(it)).map(without_markup).collect();
    let gone = named
        .iter()
        .filter(|name| name.starts_with("helix-agents"))
        .filter(|name| !crates.iter().any(|it| name_matches(name, it)))
        .map(|name| format!("ARCHITECTURE.md: names {name}, which does not exist"));
    let missing = crates
        .iter()
        .filter(|it| !named.iter().any(|name| name_matches(name, it)))
        .map(|it| format!("ARCHITECTURE.md: does not name {it}"));
    let mut complaints: Vec<String> = gone.chain(missing).collect();
    complaints.sort();
    complaints.dedup();
    complaints
}

fn is_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '-' || it == '*'
}

/// `**a-b**` without its stars, and `a-*` with its one.
fn without_markup(word: &str) -> &str {
    let word = word.trim_start_matches('*');
    match word.find("-*") {
        Some(dash) => word.get(..dash + 2).unwrap_or(word),
        None => word.trim_end_matches('*'),
    }
}
