//! The message that a model reads as the result of its call.

use crate::event::ToolOutcome;
use crate::message::construct::{
    ToolResultInput, acknowledged_message, create_tool_result_message,
};
use crate::message::{ToolCall, ToolResultMessage};

/// Returns the message that answers `call`.
#[must_use]
pub fn result_message(call: &ToolCall, outcome: &ToolOutcome) -> ToolResultMessage {
    let outcome = match outcome {
        ToolOutcome::Acknowledged => {
            return acknowledged_message(&call.id, call.provider_id.as_ref());
        }
        ToolOutcome::Success(result) => Ok(result),
        ToolOutcome::Error(error) => Err(error.message.as_str()),
    };
    create_tool_result_message(ToolResultInput {
        tool_call_id: &call.id,
        provider_id: call.provider_id.as_ref(),
        tool_name: &call.name,
        outcome,
    })
}
