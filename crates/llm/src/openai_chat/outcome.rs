//! The result of a complete reply.

use helix_agents_core::json::Json;
use helix_agents_core::message::Thinking;
use helix_agents_core::step::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
use helix_agents_core::tool::SUB_AGENT_PREFIX;

/// Returns the stop reason for a raw finish reason.
pub(super) fn stop_reason(raw: Option<&str>, has_calls: bool, refused: bool) -> Option<StopReason> {
    Some(match raw {
        Some("stop") | None if refused => StopReason::Refusal,
        Some("stop") | None if has_calls => StopReason::ToolUse,
        None => return None,
        Some("stop") => StopReason::EndTurn,
        Some("tool_calls" | "function_call") => StopReason::ToolUse,
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::ContentFilter,
        Some(_) => StopReason::Unknown,
    })
}

/// Returns the result of a reply without calls.
pub(super) fn text_result(
    content: String,
    thinking: Option<Thinking>,
    stop_reason: Option<StopReason>,
    structured: bool,
) -> StepResult {
    let is_whole = matches!(stop_reason, Some(StopReason::EndTurn) | None);
    if structured
        && is_whole
        && let Ok(output) = Json::parse(&content)
    {
        return StepResult::StructuredOutput { output, thinking, stop_reason };
    }
    StepResult::Text {
        content,
        thinking,
        // A model that requests tools but names none has not ended its turn.
        should_stop: stop_reason != Some(StopReason::ToolUse),
        stop_reason,
    }
}

/// Returns the result of a reply with calls.
pub(super) fn calls_result(
    content: String,
    calls: Vec<ParsedToolCall>,
    thinking: Option<Thinking>,
    stop_reason: Option<StopReason>,
) -> StepResult {
    let mut tool_calls = Vec::with_capacity(calls.len());
    let mut sub_agent_calls = Vec::new();
    for call in calls {
        match call.name.strip_prefix(SUB_AGENT_PREFIX) {
            None => tool_calls.push(call),
            Some(agent) => sub_agent_calls.push(ParsedSubAgentCall {
                agent_type: agent.to_owned(),
                id: call.id,
                provider_id: call.provider_id,
                input: call.arguments,
            }),
        }
    }
    StepResult::ToolCalls {
        content: Some(content).filter(|text| !text.is_empty()),
        tool_calls,
        sub_agent_calls,
        thinking,
        stop_reason,
    }
}
