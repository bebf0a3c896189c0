//! The layers within the core crate.
//!
//! `contracts` is the lowest layer, `machine` is above it, and `journal` is at the top. `machine` contains no `async`, so
//! that it can be tested without an executor.

use anyhow::Result;

use crate::imports::Crate;
use crate::tidy::{self, has_word};

#[cfg(test)]
mod tests;

/// The folder of the crate.
const FOLDER: &str = "crates/core/src";

/// The layers from the lowest to the highest.
const LAYERS: [&str; 3] = ["contracts", "machine", "journal"];

/// The layer without `async`.
const WITHOUT_ASYNC: &str = "machine";

/// Returns a complaint for every import from a higher layer, and for every line of the machine with `async` or `await`.
pub(super) fn complaints() -> Result<Vec<String>> {
    let files = tidy::files()?;
    let texts = files.iter().map(|file| (file.path.as_str(), file.text.as_str()));
    let texts: Vec<(&str, &str)> = texts.filter(|(path, _)| path.starts_with(FOLDER)).collect();
    let mut complaints = upward(&Crate::read(FOLDER, texts.iter().copied())?);
    complaints.extend(texts.iter().flat_map(|(path, text)| awaiting(path, text)));
    Ok(complaints)
}

/// Returns a complaint for every import from a higher layer.
fn upward(core: &Crate) -> Vec<String> {
    let imports = core.imports();
    let arrows =
        imports.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (*from, *to)));
    let up =
        arrows.filter(|(from, to)| layer(from).zip(layer(to)).is_some_and(|(from, to)| from < to));
    up.map(|(from, to)| format!("{from}: imports {to}, which is in a higher layer")).collect()
}

/// Returns every line of the machine that contains `async` or `await`.
fn awaiting(path: &str, text: &str) -> Vec<String> {
    let machine = LAYERS.iter().position(|layer| *layer == WITHOUT_ASYNC);
    if layer(path) != machine || path.contains("tests") {
        return Vec::new();
    }
    let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let found = code.filter(|(_, line)| ["async", "await"].iter().any(|word| has_word(line, word)));
    found
        .map(|(line, _)| format!("{path}:{}: the {WITHOUT_ASYNC} has no `async`", line + 1))
        .collect()
}

/// Returns the number of a file's layer. The root of the crate is in none.
fn layer(path: &str) -> Option<usize> {
    let below = path.strip_prefix(FOLDER)?.strip_prefix('/')?;
    let top = below.split(['/', '.']).next()?;
    LAYERS.iter().position(|layer| *layer == top)
}
