//! The outcome of a complete reply.

use helix_agents_core::step::StopReason;
use serde_json::json;

use crate::attempt::Reading;
use crate::failure::Failure;

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

/// Returns the failure that a finish reason reports.
pub(super) fn failure(raw: &str, reading: &Reading<'_>) -> Option<Failure> {
    match raw {
        // OpenRouter and Mistral, and DeepSeek.
        "error" | "insufficient_system_resource" => {
            let error = json!({ "type": raw }).to_string();
            Some(reading.subject.reported(&error, &reading.redactor))
        }
        // Gemini behind this API, possibly with a prefix.
        _ if raw.ends_with("MALFORMED_FUNCTION_CALL") => {
            Some(reading.subject.malformed(raw, &reading.redactor))
        }
        _ => None,
    }
}
