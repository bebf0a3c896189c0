//! Records of executed commands.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::command::{Command, text, todo_suggestion};

/// The record of an executed command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecutionRecord {
    /// The purpose of the call.
    pub purpose: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The arguments of the call.
    pub kwargs: Map<String, Value>,
    /// The suggestion for what to do after the call.
    pub todo_suggestion: String,
    /// The older name of `todo_suggestion`, with the same value.
    pub next: String,
    /// Whether the tool returned without an error.
    pub success: bool,
    /// The result of the tool.
    pub result: Value,
    /// The error message; empty if the tool succeeded.
    pub error: String,
}

impl ExecutionRecord {
    /// Creates the record of a command with this outcome.
    #[must_use]
    pub fn of(command: &Command, outcome: Result<Value, String>) -> Self {
        let (success, result, error) = match outcome {
            Ok(result) => (true, result, String::new()),
            Err(error) => (false, Value::Null, error),
        };
        Self {
            purpose: command.purpose.clone(),
            tool_name: command.tool_name.clone(),
            kwargs: command.tool_kwargs.clone(),
            todo_suggestion: command.todo_suggestion.clone(),
            next: command.next.clone(),
            success,
            result,
            error,
        }
    }

    /// Reads what an executor returned for its `index`-th command, from 0: a record, each member of
    /// which may be missing, or a bare result.
    #[must_use]
    pub fn normalise(value: &Value, command: Option<&Command>, index: usize) -> Self {
        let mut record = match command {
            Some(command) => Self::of(command, Ok(Value::Null)),
            None => Self { success: true, ..Self::default() },
        };
        if value.is_object() {
            record.take(value);
        } else {
            record.result = value.clone();
        }
        if record.purpose.trim().is_empty() {
            record.purpose = numbered(index);
        }
        if !record.success && record.error.is_empty() {
            record.error = match &record.result {
                Value::Null => "Tool execution failed.".to_owned(),
                Value::String(result) if result.is_empty() => "Tool execution failed.".to_owned(),
                Value::String(result) => result.clone(),
                result => result.to_string(),
            };
        }
        record
    }

    /// Copies the members that have the right type.
    fn take(&mut self, value: &Value) {
        let own = |name| text(value, name).map(str::to_owned);
        self.purpose = own("purpose").unwrap_or_else(|| std::mem::take(&mut self.purpose));
        self.tool_name = own("tool_name").unwrap_or_else(|| std::mem::take(&mut self.tool_name));
        if let Some(kwargs) = value.get("kwargs").and_then(Value::as_object) {
            self.kwargs.clone_from(kwargs);
        }
        if let Some(todo) = todo_suggestion(value) {
            todo.clone_into(&mut self.todo_suggestion);
            todo.clone_into(&mut self.next);
        }
        self.result = value.get("result").cloned().unwrap_or_default();
        self.error = own("error").unwrap_or_default();
        let success = value.get("success").and_then(Value::as_bool);
        self.success = success.unwrap_or(self.error.is_empty());
    }
}

/// Converts what an executor returned into one record per command. A command without a record and a
/// record without a command become failed records.
#[must_use]
pub fn normalise_records(commands: &[Command], returned: &[Value]) -> Vec<ExecutionRecord> {
    let mut records = Vec::with_capacity(commands.len().max(returned.len()));
    for (index, command) in commands.iter().enumerate() {
        records.push(match returned.get(index) {
            Some(value) => ExecutionRecord::normalise(value, Some(command), index),
            None => ExecutionRecord::of(
                command,
                Err("the executor returned no record for this command".to_owned()),
            ),
        });
    }
    for (index, value) in returned.iter().enumerate().skip(commands.len()) {
        let mut record = ExecutionRecord::normalise(value, None, index);
        record.success = false;
        "the executor returned a record that belongs to no command".clone_into(&mut record.error);
        records.push(record);
    }
    records
}

/// Returns the results by purpose, as the model call of an answer receives them. A repeated purpose
/// is followed by a number. A failure is `{"error", "result"}`.
#[must_use]
pub fn to_action_results(records: &[ExecutionRecord]) -> Map<String, Value> {
    let mut results = Map::new();
    for (index, record) in records.iter().enumerate() {
        let purpose = record.purpose.trim();
        let purpose = if purpose.is_empty() { numbered(index) } else { purpose.to_owned() };
        let mut key = purpose.clone();
        let mut number = 2_usize;
        while results.contains_key(&key) {
            key = format!("{purpose} ({number})");
            number += 1;
        }
        let result = if record.success {
            record.result.clone()
        } else {
            json!({ "error": record.error, "result": record.result })
        };
        results.insert(key, result);
    }
    results
}

fn numbered(index: usize) -> String {
    format!("tool_call_{}", index + 1)
}

#[cfg(test)]
mod tests;
