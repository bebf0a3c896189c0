//! What the unit tests of this crate share: replies of a model, a hand that turns the step machine
//! without a runtime, and logs as text.

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

/// One event as it stands in a log, and the run that wrote it.
pub(crate) type Entry = (Option<RunId>, Event);

/// An agent under way, with a prompt.
pub(crate) fn builder() -> AgentBuilder {
    Agent::builder("tester").system_prompt("Be brief.")
}

/// The erased agent.
pub(crate) fn built<S, O>(builder: AgentBuilder<S, O>) -> AnyAgent {
    builder.build().unwrap().erased()
}

/// A tool that takes `{"x": integer}` and gives `{"x": …}` back.
pub(crate) fn echo(name: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "additionalProperties": false,
    });
    Tool::dynamic(name, "Gives back what it gets.", schema, |input: Value, _: ToolContext| async {
        Ok(input)
    })
}

/// A tool that always fails with this sentence.
pub(crate) fn failing(name: &str, sentence: &'static str) -> Tool {
    Tool::dynamic(
        name,
        "Fails.",
        json!({"type": "object"}),
        move |_: Value, _: ToolContext| async move { Err(crate::tool::ToolError::new(sentence)) },
    )
}

/// The schema of `{"result": string}`.
pub(crate) fn result_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
        "additionalProperties": false,
    })
}
