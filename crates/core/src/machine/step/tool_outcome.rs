//! Converts tool results into outcomes. All runtimes share this code, so that they decide alike.

use std::borrow::Cow;

use super::output::repair_output;
use crate::agent::AgentDefinition;
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{FinishOutput, ToolFinish, ToolOutcome};
use crate::json::Json;
use crate::panics::caught;
use crate::state::Patch;
use crate::text::excerpt;
use crate::tool::{Tool, ToolError};

/// Converts the return value of a tool into an outcome.
#[must_use]
pub fn to_outcome(
    agent: &AgentDefinition,
    tool: &Tool,
    returned: Result<Json, ToolError>,
) -> ToolOutcome {
    let result = match returned {
        Ok(result) => result,
        Err(error) => {
            let message = error_text(error.message(), agent.limits().max_result_bytes);
            return ToolOutcome::Error(ErrorRecord::new(error.code(), message));
        }
    };
    let (size, most) = (result.text().len(), agent.limits().max_result_bytes);
    if size > most {
        let message =
            format!("the result has {size} bytes, and {most} is the limit; ask for less at once");
        return ToolOutcome::Error(ErrorRecord::new(ErrorCode::ToolResultTooLarge, message));
    }
    if let Some(Ok(schema)) = &tool.output
        && let Err(violations) = schema.validate(&result.to_value())
    {
        let message =
            format!("the tool's result does not fit its schema: {}", violations.join("; "));
        let message = error_text(&message, most);
        return ToolOutcome::Error(ErrorRecord::new(ErrorCode::ToolFailed, message));
    }
    ToolOutcome::Success(result)
}

/// Shortens an error message to at most `most` bytes, the limit of results.
fn error_text(message: &str, most: usize) -> Cow<'_, str> {
    match excerpt(message, most) {
        Cow::Owned(kept) => {
            Cow::Owned(format!("{kept} (shortened; the error has {} bytes)", message.len()))
        }
        whole => whole,
    }
}

/// Adds to the record of an executed call the effect of its outcome on the turn. The state changes
/// and attachments of a failed tool are discarded.
#[must_use]
pub fn complete_record(agent: &AgentDefinition, tool: &Tool, mut finish: ToolFinish) -> ToolFinish {
    finish.finish = finish_output(agent, tool, &finish.outcome);
    if !matches!(finish.outcome, ToolOutcome::Success(_)) {
        finish.state_patch = Patch::default();
        finish.attachments = Vec::new();
    }
    finish
}

/// Returns the effect of a finish tool's outcome on the turn. A failed tool does not complete the
/// turn: the model sees the error.
#[must_use]
pub fn finish_output(
    agent: &AgentDefinition,
    tool: &Tool,
    outcome: &ToolOutcome,
) -> Option<FinishOutput> {
    let ToolOutcome::Success(result) = outcome else {
        return None;
    };
    if !tool.finish {
        return None;
    }
    let output = match &tool.transform {
        None => result.to_value(),
        Some(transform) => match caught("the transform", || transform(result.to_value())) {
            Ok(Ok(output)) => output,
            Err(_) => {
                let message = format!("the transform of `{}` panicked", tool.name);
                let error = ErrorRecord::new(ErrorCode::FinishTransformFailed, message);
                return Some(FinishOutput::Invalid(error));
            }
            Ok(Err(error)) => {
                let message = format!("the transform of `{}` failed", tool.name);
                let failed = ErrorRecord::new(ErrorCode::FinishTransformFailed, message);
                return Some(FinishOutput::Invalid(failed.with_detail(error.message())));
            }
        },
    };
    let schema = agent.output_schema();
    let fitting = match schema {
        None => Ok(output.clone()),
        Some(schema) => repair_output(&output, schema),
    };
    let fitting = fitting
        .and_then(|output| Json::from_serialize(&output).map_err(|error| vec![error.to_string()]));
    Some(fitting.map_or_else(
        |violations| {
            let mut message = format!("the result of `{}` does not fit the output type", tool.name);
            if let Some(outline) = schema.and_then(|schema| schema.outline(&output)) {
                message.push_str(&format!(": {outline}"));
            }
            let error = ErrorRecord::new(ErrorCode::OutputInvalid, message);
            FinishOutput::Invalid(error.with_detail(violations.join("; ")))
        },
        FinishOutput::Output,
    ))
}
