//! What a model call brought, in the words of every provider.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::ErrorRecord;
use crate::id::CallId;
use crate::json::Json;
use crate::message::{Arguments, Thinking, ToolCall};

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It wants tools to run.
    ToolUse,
    /// The token limit cut it off.
    MaxTokens,
    /// A safety filter stopped it.
    ContentFilter,
    /// It refused.
    Refusal,
    /// It wrote one of the stop sequences.
    StopSequence,
    /// Generation failed.
    Error,
    /// The provider's reason is none that we know.
    Unknown,
}

/// What a model call brought.
#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    /// Text.
    Text {
        /// The text.
        content: String,
        /// Disclosed reasoning.
        thinking: Option<Thinking>,
        /// Whether the model considers the turn ended.
        should_stop: bool,
        /// Why it stopped.
        stop_reason: Option<StopReason>,
    },
    /// Calls, perhaps with text.
    ToolCalls {
        /// Text beside the calls.
        content: Option<String>,
        /// Calls of tools.
        tool_calls: Vec<ParsedToolCall>,
        /// Calls of sub-agents.
        sub_agent_calls: Vec<ParsedSubAgentCall>,
        /// Disclosed reasoning.
        thinking: Option<Thinking>,
        /// Why it stopped.
        stop_reason: Option<StopReason>,
    },
    /// An output by the provider's own structured output.
    StructuredOutput {
        /// The output.
        output: Json,
        /// Disclosed reasoning.
        thinking: Option<Thinking>,
        /// Why it stopped.
        stop_reason: Option<StopReason>,
    },
    /// The call failed.
    Error {
        /// How.
        error: ErrorRecord,
        /// Whether asking again is of no use.
        should_stop: bool,
        /// Why it stopped.
        stop_reason: Option<StopReason>,
    },
}

impl StepResult {
    /// Why the model stopped.
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

/// A tool call as an adapter read it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedToolCall {
    /// The provider's id when it comes from an adapter; ours once it is recorded.
    pub id: CallId,
    /// The provider's id once `id` is ours.
    pub provider_id: Option<Arc<str>>,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments.
    pub arguments: Arguments,
}

impl ParsedToolCall {
    /// A call as an adapter reads it.
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

/// A sub-agent call as an adapter read it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedSubAgentCall {
    /// The provider's id when it comes from an adapter; ours once it is recorded.
    pub id: CallId,
    /// The provider's id once `id` is ours.
    pub provider_id: Option<Arc<str>>,
    /// The sub-agent's name, without prefix.
    pub agent_type: String,
    /// The input.
    pub input: Arguments,
}
