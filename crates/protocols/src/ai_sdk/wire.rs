//! The chunks of the UI message stream.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A chunk of the UI message stream. Absent members are not written, because the client refuses `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum UiChunk {
    /// The message starts.
    Start {
        /// The id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Metadata, which is merged with that of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Value>,
    },
    /// A step starts.
    StartStep,
    /// A step ends.
    FinishStep,
    /// Everything after the start of the current step is removed. Version 7 only.
    ResetStep,
    /// A text part starts.
    TextStart {
        /// The id of the part.
        id: String,
    },
    /// The next piece of a text part.
    TextDelta {
        /// The id of the part.
        id: String,
        /// The piece.
        delta: String,
    },
    /// A text part ends.
    TextEnd {
        /// The id of the part.
        id: String,
    },
    /// A reasoning part starts.
    ReasoningStart {
        /// The id of the part.
        id: String,
    },
    /// The next piece of a reasoning part.
    ReasoningDelta {
        /// The id of the part.
        id: String,
        /// The piece.
        delta: String,
    },
    /// A reasoning part ends.
    ReasoningEnd {
        /// The id of the part.
        id: String,
    },
    /// The model starts to write a call.
    ToolInputStart {
        /// The id of the call.
        tool_call_id: String,
        /// The name of the tool.
        tool_name: String,
    },
    /// The next piece of a call's arguments.
    ToolInputDelta {
        /// The id of the call.
        tool_call_id: String,
        /// The piece of JSON text.
        input_text_delta: String,
    },
    /// The arguments of a call are complete.
    ToolInputAvailable {
        /// The id of the call.
        tool_call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The arguments.
        input: Value,
        /// Whether the server executes the call. The page neither executes such a call nor waits for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
    },
    /// The arguments of a call are not valid, or the call is not executed.
    ToolInputError {
        /// The id of the call.
        tool_call_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The arguments; their text if they are not JSON; `{}` if there are none or the reply was discarded. The AI SDK
        /// requires this member.
        input: Value,
        /// The error for the user.
        error_text: String,
        /// Whether the server executes the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
    },
    /// A call waits for an approval.
    ToolApprovalRequest {
        /// The id under which the page answers.
        approval_id: String,
        /// The id of the call.
        tool_call_id: String,
    },
    /// An approval request was answered. Version 7 only.
    ToolApprovalResponse {
        /// The id of the request.
        approval_id: String,
        /// Whether the call was approved.
        approved: bool,
        /// The reason of the approver.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A call has a result.
    ToolOutputAvailable {
        /// The id of the call.
        tool_call_id: String,
        /// The result.
        output: Value,
        /// Whether the server executed the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        /// Whether a later result replaces this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preliminary: Option<bool>,
    },
    /// A call failed.
    ToolOutputError {
        /// The id of the call.
        tool_call_id: String,
        /// The error for the user.
        error_text: String,
        /// Whether the server executed the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
    },
    /// A call was denied.
    ToolOutputDenied {
        /// The id of the call.
        tool_call_id: String,
    },
    /// Metadata, which is merged with that of the message.
    MessageMetadata {
        /// The metadata.
        message_metadata: Value,
    },
    /// The response failed. The client ignores everything after this chunk.
    Error {
        /// The error for the user.
        error_text: String,
    },
    /// The run was stopped.
    Abort {
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The message ends.
    Finish {
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        /// Metadata, which is merged with that of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Value>,
    },
    /// Data of a type of its own.
    #[serde(untagged)]
    Data {
        /// The type, which starts with `data-`.
        #[serde(rename = "type")]
        kind: String,
        /// The id. Data with the id of an earlier chunk of the same type replaces it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The data.
        data: Value,
        /// Whether the data is only reported and does not become part of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transient: Option<bool>,
    },
}

/// The reason why a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The turn is complete.
    Stop,
    /// The reply reached the token limit.
    Length,
    /// The provider's content filter stopped the reply.
    ContentFilter,
    /// The turn waits for answers to calls.
    ToolCalls,
    /// The run failed.
    Error,
    /// The run was stopped on request. Version 7 only.
    Interrupted,
    /// Another reason.
    Other,
}

impl UiChunk {
    /// Creates data that the page keeps under its id.
    pub(crate) fn data(name: &str, id: &str, data: Value) -> Self {
        Self::Data { kind: format!("data-{name}"), id: Some(id.to_owned()), data, transient: None }
    }

    /// Creates data that is only reported.
    pub(crate) fn transient(name: &str, data: Value) -> Self {
        Self::Data { kind: format!("data-{name}"), id: None, data, transient: Some(true) }
    }
}
