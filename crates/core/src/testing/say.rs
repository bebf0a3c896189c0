//! Model replies.

use serde_json::Value;

use crate::error::{ErrorCode, ErrorRecord};
use crate::message::Arguments;
use crate::step::{ParsedToolCall, StepResult, StopReason};
use crate::tool::FINISH_TOOL;

/// Returns text that ends the turn.
pub(crate) fn text(content: &str) -> StepResult {
    StepResult::Text {
        content: content.to_owned(),
        thinking: None,
        should_stop: true,
        stop_reason: Some(StopReason::EndTurn),
    }
}

/// Returns text that does not end the turn.
pub(crate) fn more_text(content: &str) -> StepResult {
    StepResult::Text {
        content: content.to_owned(),
        thinking: None,
        should_stop: false,
        stop_reason: None,
    }
}

/// Returns calls with the provider ids `p0`, `p1` …
pub(crate) fn calls<const N: usize>(calls: [(&str, Value); N]) -> StepResult {
    let calls = calls.into_iter().map(|(name, input)| (name, Arguments::from(input)));
    tool_calls(calls.collect())
}

/// Returns a call with this text as arguments.
pub(crate) fn raw_call(name: &str, arguments: &str) -> StepResult {
    tool_calls(vec![(name, Arguments::parse(arguments))])
}

fn tool_calls(calls: Vec<(&str, Arguments)>) -> StepResult {
    let parsed = |(index, (name, arguments))| {
        ParsedToolCall::new(format!("p{index}").as_str(), name, arguments)
    };
    StepResult::ToolCalls {
        content: None,
        tool_calls: calls.into_iter().enumerate().map(parsed).collect(),
        sub_agent_calls: Vec::new(),
        thinking: None,
        stop_reason: Some(StopReason::ToolUse),
    }
}

/// Returns a call of `__finish__`.
pub(crate) fn finish(output: Value) -> StepResult {
    calls([(FINISH_TOOL, output)])
}

/// Returns native structured output.
pub(crate) fn output(output: Value) -> StepResult {
    StepResult::StructuredOutput {
        output: output.into(),
        thinking: None,
        stop_reason: Some(StopReason::EndTurn),
    }
}

/// Returns a failed model call.
pub(crate) fn error_step(code: ErrorCode, should_stop: bool) -> StepResult {
    StepResult::Error {
        error: ErrorRecord::new(code, "as arranged"),
        should_stop,
        stop_reason: Some(StopReason::Error),
    }
}

/// Returns the same reply with another stop reason.
pub(crate) fn stopped(mut result: StepResult, reason: StopReason) -> StepResult {
    let (StepResult::Text { stop_reason, .. }
    | StepResult::ToolCalls { stop_reason, .. }
    | StepResult::StructuredOutput { stop_reason, .. }
    | StepResult::Error { stop_reason, .. }) = &mut result;
    *stop_reason = Some(reason);
    result
}
