//! A command of a plan, in each of its forms.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool call that a plan requests, with its purpose.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// The purpose of the call.
    pub purpose: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The arguments of the call.
    pub tool_kwargs: Map<String, Value>,
    /// A suggestion for what to do after the call.
    pub todo_suggestion: String,
    /// The older name of `todo_suggestion`, with the same value.
    pub next: String,
}

impl Command {
    /// Reads a command as a planner wrote it. `todo` is the suggestion of the decision, for
    /// commands without their own. Returns `None` if the command names no tool.
    #[must_use]
    pub fn normalise(value: &Value, todo: &str) -> Option<Self> {
        let tool_name = text(value, "tool_name")?.to_owned();
        let purpose =
            text(value, "purpose").map_or_else(|| format!("Use {tool_name}"), str::to_owned);
        let todo = todo_suggestion(value).unwrap_or(todo).to_owned();
        let tool_kwargs = value.get("tool_kwargs").and_then(Value::as_object).cloned();
        Some(Self {
            purpose,
            tool_name,
            tool_kwargs: tool_kwargs.unwrap_or_default(),
            todo_suggestion: todo.clone(),
            next: todo,
        })
    }

    /// Returns `true` if both commands make the same call.
    pub(crate) fn calls_the_same(&self, other: &Self) -> bool {
        self.tool_name == other.tool_name && self.tool_kwargs == other.tool_kwargs
    }
}

/// Returns a text member that is not blank.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// Returns the suggestion under either of its names.
pub(crate) fn todo_suggestion(value: &Value) -> Option<&str> {
    text(value, "todo_suggestion").or_else(|| text(value, "next"))
}

#[cfg(test)]
mod tests;
