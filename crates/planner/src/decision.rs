//! The decision of a planner, in normal form.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::command::{Command, todo_suggestion};

/// The next action of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NextAction {
    /// The commands are executed, and then the planner is called again.
    Execute,
    /// The agent answers.
    #[default]
    Response,
}

/// The decision of a planner.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// The next action. It is `Execute` if and only if there are commands.
    pub next_action: NextAction,
    /// The planner's suggestion for what to do after the commands.
    pub next: String,
    /// The commands to execute concurrently.
    pub execution_commands: Vec<Command>,
}

impl Decision {
    /// Reads what a planner wrote, in any of its forms: `execution_commands`, `tool_commands` or a
    /// single `tool_command`; `todo_suggestion` or `next`. The first list that is present is used,
    /// even if it is empty. The single command is used if the list has no commands. Commands
    /// without a tool are dropped. A missing or unknown `next_action` follows from whether there
    /// are commands. A value that is not an object means that the agent answers.
    #[must_use]
    pub fn normalise(value: &Value) -> Self {
        let next = todo_suggestion(value).unwrap_or_default().to_owned();
        let mut commands: Vec<_> = ["execution_commands", "tool_commands"]
            .iter()
            .find_map(|name| value.get(name)?.as_array())
            .into_iter()
            .flatten()
            .filter_map(|command| Command::normalise(command, &next))
            .collect();
        if commands.is_empty() {
            let single = value.get("tool_command");
            commands.extend(single.and_then(|command| Command::normalise(command, &next)));
        }
        let action = value.get("next_action").and_then(Value::as_str).map(str::to_lowercase);
        let declined = action.as_deref() == Some("response")
            || value.get("use_tool").and_then(Value::as_bool) == Some(false);
        if declined {
            commands.clear();
        }
        let next_action =
            if commands.is_empty() { NextAction::Response } else { NextAction::Execute };
        Self { next_action, next, execution_commands: commands }
    }

    /// Returns `true` if tools are to be used.
    #[must_use]
    pub fn use_tool(&self) -> bool {
        self.next_action == NextAction::Execute
    }

    /// Returns the decision as JSON, with the commands under both of their names.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "next_action": self.next_action,
            "use_tool": self.use_tool(),
            "next": self.next,
            "execution_commands": self.execution_commands,
            "tool_commands": self.execution_commands,
        })
    }
}

#[cfg(test)]
mod tests;
