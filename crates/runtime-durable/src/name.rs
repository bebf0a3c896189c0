//! Step names, and validation of names for DBOS and PostgreSQL.

use helix_agents_core::id::CallId;
use helix_agents_runtime::WorkItem;

#[cfg(test)]
mod tests;

/// The separator between the parts of a workflow id.
const SEPARATOR: &str = "__";

/// Returns the step name of a work item.
pub(crate) fn step(item: &WorkItem) -> String {
    match item {
        WorkItem::Open => "open".to_owned(),
        WorkItem::Model(step) => format!("model/{step}"),
        WorkItem::Children => "children".to_owned(),
        WorkItem::Companions => "companions".to_owned(),
        WorkItem::Call(call) => self::call(call),
        WorkItem::Settle(calls) => match calls.iter().find_map(|call| call.step()) {
            Some(step) => format!("settle/{step}"),
            None => "settle".to_owned(),
        },
    }
}

/// Returns the step name of a call.
pub(crate) fn call(call: &CallId) -> String {
    format!("call/{call}")
}

/// Returns the problem with a schema name, if it is invalid.
pub(crate) fn problem_of_schema(name: &str) -> Option<&'static str> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() {
        Some("has no name")
    } else if name.len() > 63 {
        Some("has a name of more than 63 letters")
    } else if !name.chars().all(good) || name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("may hold lower-case letters, digits and `_` only, and not start with a digit")
    } else if name.starts_with("pg_") || name == "information_schema" {
        Some("has a name that PostgreSQL keeps for itself")
    } else {
        None
    }
}

/// Returns the problem with an application name, if it is invalid.
pub(crate) fn problem_of_app(name: &str) -> Option<&'static str> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !(3..=100).contains(&name.len()) {
        Some("must have 3 to 100 letters")
    } else if !name.chars().all(good) {
        Some("may hold lower-case letters, digits, `-` and `_` only")
    } else if name.contains(SEPARATOR) || name.starts_with('_') || name.ends_with('_') {
        Some("must not hold two `_` together, or start or end with one")
    } else {
        None
    }
}
