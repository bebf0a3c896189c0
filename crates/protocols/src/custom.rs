//! The names of custom events.

use std::borrow::Cow;

/// The names of the events and data that this crate sends itself, in both protocols.
const RESERVED: [&str; 7] = [
    "discarded",
    "output",
    "state-patch",
    "subagent",
    "subagent_text",
    "tool-progress",
    "tool_progress",
];

const PREFIX: &str = "custom-";

/// Returns the name under which a custom event is shown. A reserved name gets the prefix `custom-`, and so does a name
/// that has the prefix already, so that two names never become one.
pub(crate) fn shown_name(name: &str) -> Cow<'_, str> {
    if RESERVED.contains(&name) || name.starts_with(PREFIX) {
        format!("{PREFIX}{name}").into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests;
