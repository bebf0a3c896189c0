//! Helpers of this crate's unit tests: model replies, a driver for the step machine without a
//! runtime, and logs as text.

mod hand;
mod say;
mod show;

pub(crate) use hand::{Hand, run_tool};
pub(crate) use say::{calls, error_step, finish, more_text, output, raw_call, stopped, text};
pub(crate) use show::{action_text, log_text, transcript_text};

use serde_json::{Value, json};

use crate::agent::{Agent, AgentBuilder, AnyAgent};
use crate::event::Event;
use crate::id::RunId;
use crate::tool::{Tool, ToolContext};

/// A log event, and the run that wrote it.
pub(crate) type Entry = (Option<RunId>, Event);

/// Returns an agent builder with a prompt.
pub(crate) fn builder() -> AgentBuilder {
    Agent::builder("tester").system_prompt("Be brief.")
}

/// Builds an agent and erases its types.
pub(crate) fn built<O>(builder: AgentBuilder<O>) -> AnyAgent {
    builder.build().unwrap().erased()
}

/// Returns a tool that echoes its input `{"x": integer}`.
pub(crate) fn echo(name: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "additionalProperties": false,
    });
    Tool::dynamic(name, "Returns its input.", schema, |input: Value, _: ToolContext| async {
        Ok(input)
    })
}

/// Returns a tool that always fails with this message.
pub(crate) fn failing(name: &str, sentence: &'static str) -> Tool {
    Tool::dynamic(
        name,
        "Fails.",
        json!({"type": "object"}),
        move |_: Value, _: ToolContext| async move { Err(crate::tool::ToolError::new(sentence)) },
    )
}

/// Returns the schema of `{"result": string}`.
pub(crate) fn result_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
        "additionalProperties": false,
    })
}
