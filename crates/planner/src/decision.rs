//! What a planner decided, brought into one form.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::command::{Command, todo_suggestion};

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// The commands are carried out, and the planner is asked again.
    Execute,
    /// The agent answers.
    #[default]
    Response,
}

/// What a planner decided.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// What comes next: `Execute` exactly if there are commands.
    pub next_action: NextAction,
    /// What the planner would have done afterwards.
    pub next: String,
    /// What is to be carried out, side by side.
    pub execution_commands: Vec<Command>,
}

impl Decision {
    /// Reads what a planner wrote, in any of the spellings: `execution_commands`, `tool_commands`
    /// or a single `tool_command`; `todo_suggestion` or `next`. The first list that is there
    /// counts, even if it is empty; the single command counts if the list gave nothing. Commands
    /// without a tool are left out. A missing or unknown `next_action` follows from whether there
    /// are commands. What is no object means: answer.
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
        let said = value.get("next_action").and_then(Value::as_str).map(str::to_lowercase);
        let unwilling = said.as_deref() == Some("response")
            || value.get("use_tool").and_then(Value::as_bool) == Some(false);
        if unwilling {
            commands.clear();
        }
        let next_action =
            if commands.is_empty() { NextAction::Response } else { NextAction::Execute };
        Self { next_action, next, execution_commands: commands }
    }

    /// Whether tools are to be used.
    #[must_use]
    pub fn use_tool(&self) -> bool {
        self.next_action == NextAction::Execute
    }

    /// The decision as JSON, with the commands under both of their names.
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
