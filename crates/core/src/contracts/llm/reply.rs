//! Results of model calls, in terms that all providers share.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::ErrorRecord;
use crate::id::CallId;
use crate::json::Json;
use crate::message::{Arguments, Thinking, ToolCall};

/// The reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its answer.
    EndTurn,
    /// The model requests tool calls.
    ToolUse,
    /// The reply reached the token limit.
    MaxTokens,
    /// A safety filter stopped the reply.
    ContentFilter,
    /// The model refused to answer.
    Refusal,
    /// The model wrote one of the stop sequences.
    StopSequence,
    /// The provider paused a long turn. The next model call sends the reply back unchanged, and the
    /// model continues it.
    Pause,
    /// The generation failed.
    Error,
    /// The provider's reason is not one of the above.
    Unknown,
}

/// The output of a model call, in terms that all providers share.
#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    /// A text reply.
    Text {
        /// The text of the reply.
        content: String,
        /// The reasoning that the model disclosed.
        thinking: Option<Thinking>,
        /// Whether the model considers the turn over.
        should_stop: bool,
        /// The reason why the model stopped.
        stop_reason: Option<StopReason>,
    },
    /// Tool calls, optionally with text.
    ToolCalls {
        /// The text of the reply.
        content: Option<String>,
        /// The tool calls.
        tool_calls: Vec<ParsedToolCall>,
        /// The sub-agent calls.
        sub_agent_calls: Vec<ParsedSubAgentCall>,
        /// The reasoning that the model disclosed.
        thinking: Option<Thinking>,
        /// The reason why the model stopped.
        stop_reason: Option<StopReason>,
    },
    /// An output from the provider's native structured output.
    StructuredOutput {
        /// The output as JSON.
        output: Json,
        /// The reasoning that the model disclosed.
        thinking: Option<Thinking>,
        /// The reason why the model stopped.
        stop_reason: Option<StopReason>,
    },
    /// A failed model call.
    Error {
        /// The error of the call.
        error: ErrorRecord,
        /// Whether a retry cannot help.
        should_stop: bool,
        /// The reason why the model stopped.
        stop_reason: Option<StopReason>,
    },
}

impl StepResult {
    /// Returns the reason why the model stopped.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        match self {
            Self::Text { stop_reason, .. }
            | Self::ToolCalls { stop_reason, .. }
            | Self::StructuredOutput { stop_reason, .. }
            | Self::Error { stop_reason, .. } => *stop_reason,
        }
    }
}

/// A tool call as parsed by a provider adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedToolCall {
    /// The provider's id while the call comes from an adapter; the framework's id once it is
    /// recorded.
    pub id: CallId,
    /// The provider's id, once `id` is the framework's.
    pub provider_id: Option<Arc<str>>,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments of the call.
    pub arguments: Arguments,
}

impl ParsedToolCall {
    /// Creates a call as an adapter parses it.
    pub fn new(id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: Arguments) -> Self {
        Self { id: id.into(), provider_id: None, name: name.into(), arguments }
    }
}

impl From<&ToolCall> for ParsedToolCall {
    fn from(call: &ToolCall) -> Self {
        Self {
            id: call.id.clone(),
            provider_id: call.provider_id.clone(),
            name: Arc::clone(&call.name),
            arguments: call.arguments.clone(),
        }
    }
}

/// A sub-agent call as parsed by a provider adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedSubAgentCall {
    /// The provider's id while the call comes from an adapter; the framework's id once it is
    /// recorded.
    pub id: CallId,
    /// The provider's id, once `id` is the framework's.
    pub provider_id: Option<Arc<str>>,
    /// The sub-agent's name, without prefix.
    pub agent_type: String,
    /// The input of the sub-agent.
    pub input: Arguments,
}
