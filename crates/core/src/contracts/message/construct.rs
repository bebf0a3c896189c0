//! Construction of messages from replies and results.

use std::sync::Arc;

use super::{AssistantMessage, Thinking, ToolCall, ToolResultMessage};
use crate::id::CallId;
use crate::json::Json;
use crate::llm::reply::{ParsedSubAgentCall, ParsedToolCall};
use crate::tool::{FINISH_TOOL, SUB_AGENT_PREFIX};

/// The parts of an assistant message.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct AssistantMessageParts {
    /// The text of the message.
    pub content: Option<String>,
    /// The tool calls, including `__finish__`.
    pub tool_calls: Vec<ParsedToolCall>,
    /// The sub-agent calls.
    pub sub_agent_calls: Vec<ParsedSubAgentCall>,
    /// The reasoning that the model disclosed.
    pub thinking: Option<Thinking>,
}

/// Assembles an assistant message. Sub-agent calls follow the tool calls, under their prefixed
/// name, also if an adapter returns them among the tool calls.
#[must_use]
pub fn create_assistant_message(parts: AssistantMessageParts) -> AssistantMessage {
    let calls = parts.tool_calls.into_iter().map(|call| ToolCall {
        id: call.id,
        provider_id: call.provider_id,
        name: call.name,
        arguments: call.arguments,
    });
    let (prefixed, mut tool_calls): (Vec<_>, Vec<_>) =
        calls.partition(|call| call.name.starts_with(SUB_AGENT_PREFIX));
    let children = parts.sub_agent_calls.into_iter().map(|call| ToolCall {
        id: call.id,
        provider_id: call.provider_id,
        name: format!("{SUB_AGENT_PREFIX}{}", call.agent_type).into(),
        arguments: call.input,
    });
    tool_calls.extend(prefixed.into_iter().chain(children));
    AssistantMessage { content: parts.content, tool_calls, thinking: parts.thinking, layout: None }
}

/// The parts of a tool result message.
#[derive(Debug, Clone, Copy)]
pub struct ToolResultInput<'a> {
    /// The id of the call.
    pub tool_call_id: &'a CallId,
    /// The provider's id of the call, for the wire format.
    pub provider_id: Option<&'a Arc<str>>,
    /// The tool's name as the model wrote it.
    pub tool_name: &'a str,
    /// The outcome of the call: the result, or the error message.
    pub outcome: std::result::Result<&'a Json, &'a str>,
}

/// Creates the message that answers a tool call: the result as JSON text, or `{"error":"…"}`.
#[must_use]
pub fn create_tool_result_message(input: ToolResultInput<'_>) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: input.tool_call_id.clone(),
        provider_id: input.provider_id.cloned(),
        tool_name: input.tool_name.to_owned(),
        content: match input.outcome {
            Ok(result) => result.text().to_owned(),
            Err(error) => serde_json::json!({ "error": error }).to_string(),
        },
        attachments: Vec::new(),
        failed: input.outcome.is_err(),
    }
}

/// The parts of a sub-agent result message.
#[derive(Debug, Clone, Copy)]
pub struct SubAgentResultInput<'a> {
    /// The id of the call.
    pub tool_call_id: &'a CallId,
    /// The provider's id of the call, for the wire format.
    pub provider_id: Option<&'a Arc<str>>,
    /// The sub-agent's name, without prefix.
    pub agent_type: &'a str,
    /// The outcome of the call: the output, or the error message.
    pub outcome: std::result::Result<&'a Json, &'a str>,
}

/// Creates the message that answers a sub-agent call.
#[must_use]
pub fn create_sub_agent_result_message(input: SubAgentResultInput<'_>) -> ToolResultMessage {
    create_tool_result_message(ToolResultInput {
        tool_call_id: input.tool_call_id,
        provider_id: input.provider_id,
        tool_name: &format!("{SUB_AGENT_PREFIX}{}", input.agent_type),
        outcome: input.outcome,
    })
}

/// The content of the result message of a `__finish__` call.
const ACKNOWLEDGED: &str = r#"{"acknowledged":true}"#;

/// Returns the result message of a `__finish__` call.
pub(crate) fn acknowledged_message(
    call: &CallId,
    provider_id: Option<&Arc<str>>,
) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.clone(),
        provider_id: provider_id.cloned(),
        tool_name: FINISH_TOOL.to_owned(),
        content: ACKNOWLEDGED.to_owned(),
        attachments: Vec::new(),
        failed: false,
    }
}
