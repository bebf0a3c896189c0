//! Construction of messages, and their assembly for a model call.

use std::sync::Arc;

use serde_json::Value;

use super::result::{ParsedSubAgentCall, ParsedToolCall};
use crate::agent::AgentDefinition;
use crate::error::Result;
use crate::id::CallId;
use crate::json::Json;
use crate::message::{
    AssistantMessage, Message, SharedMessage, Thinking, ToolCall, ToolResultMessage,
};
use crate::tool::{FINISH_TOOL, SUB_AGENT_PREFIX};

/// The parts of an assistant message.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct AssistantMessagePlan {
    /// The text of the message.
    pub content: Option<String>,
    /// The tool calls, including `__finish__`.
    pub tool_calls: Vec<ParsedToolCall>,
    /// The sub-agent calls.
    pub sub_agent_calls: Vec<ParsedSubAgentCall>,
    /// The reasoning that the model disclosed.
    pub thinking: Option<Thinking>,
}

/// Creates the assistant message of a plan. Sub-agent calls follow the tool calls, under their
/// prefixed name.
#[must_use]
pub fn create_assistant_message(plan: AssistantMessagePlan) -> AssistantMessage {
    let tools = plan.tool_calls.into_iter().map(|call| ToolCall {
        id: call.id,
        provider_id: call.provider_id,
        name: call.name,
        arguments: call.arguments,
    });
    let children = plan.sub_agent_calls.into_iter().map(|call| ToolCall {
        id: call.id,
        provider_id: call.provider_id,
        name: format!("{SUB_AGENT_PREFIX}{}", call.agent_type).into(),
        arguments: call.input,
    });
    AssistantMessage {
        content: plan.content,
        tool_calls: tools.chain(children).collect(),
        thinking: plan.thinking,
    }
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

/// The messages of a model call: the system message and the borrowed transcript.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LlmMessages<'a> {
    /// The system message with the resolved prompt.
    pub system: SharedMessage,
    /// The messages of the session.
    pub transcript: &'a [SharedMessage],
}

impl LlmMessages<'_> {
    /// Returns all messages, the system message first.
    pub fn iter(&self) -> impl Iterator<Item = &SharedMessage> {
        std::iter::once(&self.system).chain(self.transcript)
    }
}

/// Resolves the agent's prompt with its state and puts it before the transcript. If the agent has
/// an output type, the prompt is followed by a section that tells the model how to return the
/// output.
///
/// # Errors
/// Returns [`StateInvalid`](crate::error::ErrorCode::StateInvalid) if the prompt is a function of
/// the state and the state does not fit its type.
pub fn build_messages_for_llm<'a>(
    transcript: &'a [SharedMessage],
    agent: &AgentDefinition,
    state: &Value,
) -> Result<LlmMessages<'a>> {
    Ok(LlmMessages { system: agent.system_message(state)?, transcript })
}

/// Returns the first `__finish__` call without a result in a transcript.
#[must_use]
pub fn find_unpaired_finish_call_id(transcript: &[SharedMessage]) -> Option<CallId> {
    let answered = |id: &CallId| {
        transcript.iter().any(|message| match &**message {
            Message::Tool(result) => result.tool_call_id == *id,
            _ => false,
        })
    };
    let assistants = transcript.iter().filter_map(|message| match &**message {
        Message::Assistant(assistant) => Some(assistant),
        _ => None,
    });
    assistants
        .flat_map(|assistant| &assistant.tool_calls)
        .find(|call| *call.name == *FINISH_TOOL && !answered(&call.id))
        .map(|call| call.id.clone())
}
