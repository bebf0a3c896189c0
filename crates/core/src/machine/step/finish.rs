//! The result of the call that completes a turn.

use crate::event::{ToolFinish, ToolOutcome};
use crate::id::CallId;

/// Returns the event that records the result of a `__finish__` call. The result message is derived
/// only from this event. The message does not repeat the turn's output, which is in the call's
/// arguments.
#[must_use]
pub fn synthesize_finish_tool_result(call: CallId) -> ToolFinish {
    ToolFinish::without_run(call, ToolOutcome::Acknowledged)
}
