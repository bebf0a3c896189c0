//! What a program has below it that turns on few features of the library: no client of any server.
//!
//! A row of the table cannot say that, because rows are about all features at once.

use anyhow::Result;

use super::{Below, below};
use crate::workspace::name_matches;

const FACADE: &str = "helix-agents";

/// The features that need no server, as a program turns them on.
const SELECTIONS: &[&[&str]] = &[&[], &["--no-default-features", "--features", "runtime-local"]];

/// What talks to servers, and what it takes to build that. A trailing `*` stands for the rest of a name.
const NEVER: &[&str] = &["temporalio-*", "dbos*", "sqlx-postgres", "redis*", "tonic*"];

/// Every client of a server below a selection.
pub(super) fn complaints() -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for selection in SELECTIONS {
        complaints.extend(check(selection, &below(FACADE, selection)?));
    }
    Ok(complaints)
}

pub(super) fn check(selection: &[&str], below: &[Below]) -> Vec<String> {
    let command: String = selection.iter().map(|word| format!(" {word}")).collect();
    let with = if selection.is_empty() { " as it is by default" } else { &command };
    let banned =
        below.iter().filter(|it| NEVER.iter().any(|pattern| name_matches(pattern, &it.name)));
    let mut complaints: Vec<String> = banned
        .map(|it| {
            format!(
                "{FACADE}{with}: must not have {0} below it; see `cargo tree -p {FACADE}{command} -e normal -i {0}`",
                it.name
            )
        })
        .collect();
    complaints.sort();
    complaints.dedup();
    complaints
}
