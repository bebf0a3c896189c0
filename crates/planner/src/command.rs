//! One command of a plan, in either spelling.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One tool call that a plan wants, and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// What the call is to bring.
    pub purpose: String,
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub tool_kwargs: Map<String, Value>,
    /// What to do after it.
    pub todo_suggestion: String,
    /// The same as `todo_suggestion`: its older name.
    pub next: String,
}

impl Command {
    /// Reads a command as a planner wrote it; `todo` is the decision's own suggestion, for commands
    /// without one. `None` without a tool to call.
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

    /// Whether the two would do the same.
    pub(crate) fn calls_the_same(&self, other: &Self) -> bool {
        self.tool_name == other.tool_name && self.tool_kwargs == other.tool_kwargs
    }
}

/// A member that is text with more than blanks in it.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The suggestion under either of its names.
pub(crate) fn todo_suggestion(value: &Value) -> Option<&str> {
    text(value, "todo_suggestion").or_else(|| text(value, "next"))
}

#[cfg(test)]
mod tests;
