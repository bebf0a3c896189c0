//! The stop reason of a complete reply.

use helix_agents_core::step::StopReason;

/// Returns the stop reason for a raw finish reason.
pub(super) fn stop_reason(raw: Option<&str>, has_calls: bool, refused: bool) -> Option<StopReason> {
    Some(match raw {
        Some("stop" | "tool_calls" | "function_call") | None if refused => StopReason::Refusal,
        Some("stop") | None if has_calls => StopReason::ToolUse,
        None => return None,
        Some("stop") => StopReason::EndTurn,
        Some("tool_calls" | "function_call") => StopReason::ToolUse,
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::ContentFilter,
        Some(_) => StopReason::Unknown,
    })
}
