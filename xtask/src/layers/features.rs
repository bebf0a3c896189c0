//! Dependencies of a program that enables few features of the library: they must not include a client of any server.
//!
//! The table of layers cannot express this, because its rows are about all features at once.

use anyhow::Result;

use super::{Below, below};
use crate::workspace::name_matches;

const FACADE: &str = "helix-agents";

/// The arguments of programs that need no server.
const SELECTIONS: &[&[&str]] = &[&[], &["--no-default-features", "--features", "runtime-local"]];

/// Clients of servers, and packages that are only needed to build them. A trailing `*` matches the rest of a name.
const NEVER: &[&str] = &["temporalio-*", "dbos*", "sqlx-postgres", "redis*", "tonic*"];

/// Returns every client of a server among the dependencies of a selection.
pub(super) fn complaints() -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for selection in SELECTIONS {
        complaints.extend(check(selection, &below(FACADE, selection)?));
    }
    Ok(complaints)
}

pub(super) fn check(selection: &[&str], below: &[Below]) -> Vec<String> {
    let command: String = selection.iter().map(|word| format!(" {word}")).collect();
    let with = if selection.is_empty() { " with default features" } else { &command };
    let banned = below
        .iter()
        .filter(|package| NEVER.iter().any(|pattern| name_matches(pattern, &package.name)));
    let mut complaints: Vec<String> = banned
        .map(|package| {
            format!(
                "{FACADE}{with}: must not depend on {0}, directly or indirectly; see `cargo tree -p {FACADE}{command} -e normal -i {0}`",
                package.name
            )
        })
        .collect();
    complaints.sort();
    complaints.dedup();
    complaints
}
