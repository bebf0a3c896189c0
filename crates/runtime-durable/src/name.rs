//! The names of workflows, and which names DBOS and PostgreSQL can do with.

use std::borrow::Cow;
use std::fmt::Write as _;

use helix_agents_runtime::{Part, RunRef};
use sha2::{Digest as _, Sha256};

#[cfg(test)]
mod tests;

/// What stands between the parts of a workflow's id.
const BETWEEN: &str = "__";

/// The longest part that stands for itself.
const MAX_PART: usize = 120;

/// The id of the workflow that carries out a run: `{app}__{agent}__{session}`, and for all but the
/// session's first run `__resume-{number}` after it. Which run it is can be read off it, for none of its
/// parts holds what stands between them.
pub(crate) fn workflow_id(app: &str, of: &RunRef) -> String {
    let mut id = format!("{app}{BETWEEN}{}{BETWEEN}{}", part(&of.agent), part(of.session.as_str()));
    if of.number > 0 {
        // Writing to a string does not fail.
        let _ = write!(id, "{BETWEEN}resume-{}", of.number);
    }
    id
}

/// A name as part of an id: itself, or a digest if it is long or could be taken for something else.
fn part(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@');
    let stands_alone = !name.is_empty()
        && name.len() <= MAX_PART
        && name.chars().all(plain)
        && !name.contains(BETWEEN)
        && !name.starts_with('_')
        && !name.ends_with('_');
    if stands_alone {
        return Cow::Borrowed(name);
    }
    // `~` stands in no plain one.
    let mut text = String::from("~");
    for byte in Sha256::digest(name).iter().take(16) {
        let _ = write!(text, "{byte:02x}");
    }
    Cow::Owned(text)
}

/// The name of the step that a part is.
pub(crate) fn step(part: &Part) -> String {
    match part {
        Part::Open => "open".to_owned(),
        Part::Model(step) => format!("model/{step}"),
        Part::Children => "children".to_owned(),
        Part::Companions => "companions".to_owned(),
        Part::Settle(calls) => match calls.iter().find_map(|call| call.step()) {
            Some(step) => format!("settle/{step}"),
            None => "settle".to_owned(),
        },
    }
}

/// Why a schema cannot be called so.
pub(crate) fn problem_of_schema(name: &str) -> Option<&'static str> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() {
        Some("has no name")
    } else if name.len() > 63 {
        Some("has a name of more than 63 letters")
    } else if !name.chars().all(good) || name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("may hold lower-case letters, digits and `_` only, and not begin with a digit")
    } else if name.starts_with("pg_") || name == "information_schema" {
        Some("has a name that PostgreSQL keeps for itself")
    } else {
        None
    }
}

/// Why an application cannot be called so.
pub(crate) fn problem_of_app(name: &str) -> Option<&'static str> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !(3..=100).contains(&name.len()) {
        Some("must have 3 to 100 letters")
    } else if !name.chars().all(good) {
        Some("may hold lower-case letters, digits, `-` and `_` only")
    } else if name.contains(BETWEEN) || name.starts_with('_') || name.ends_with('_') {
        Some("must not hold two `_` together, or begin or end with one")
    } else {
        None
    }
}
