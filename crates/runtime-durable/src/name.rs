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
        Some("must not be empty")
    } else if name.len() > 63 {
        Some("must have at most 63 characters")
    } else if !name.chars().all(good) || name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("may contain only lower-case letters, digits and `_`, and must not start with a digit")
    } else if name.starts_with("pg_") || name == "information_schema" {
        Some("is reserved by PostgreSQL")
    } else {
        None
    }
}

/// Returns the problem with an application name, if it is invalid.
pub(crate) fn problem_of_app(name: &str) -> Option<&'static str> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !(3..=100).contains(&name.len()) {
        Some("must have 3 to 100 characters")
    } else if !name.chars().all(good) {
        Some("may contain only lower-case letters, digits, `-` and `_`")
    } else if name.contains(SEPARATOR) || name.starts_with('_') || name.ends_with('_') {
        Some("must not contain `__`, or start or end with `_`")
    } else {
        None
    }
}
