//! The messages of the AI SDK.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message as the page keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UiMessage {
    /// The id of the message.
    pub id: String,
    /// The author of the message.
    pub role: Role,
    /// The metadata of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The parts of the message in order.
    pub parts: Vec<UiPart>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The system prompt.
    System,
    /// The user.
    User,
    /// The agent.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum UiPart {
    /// The start of a step.
    StepStart,
    /// Text of the model or of the user.
    Text(TextPart),
    /// Reasoning of the model.
    Reasoning(TextPart),
    /// A file.
    File {
        /// The media type.
        media_type: String,
        /// The address, or the content as a `data:` URL.
        url: String,
        /// The name of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
    },
    /// A tool call, with the type `tool-NAME`.
    #[serde(untagged)]
    Tool(Box<ToolPart>),
    /// Data, with the type `data-NAME`.
    #[serde(untagged)]
    Data(DataPart),
}

/// A text or reasoning part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    /// The id of a reasoning part in version 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// The state of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PartState>,
}

/// The state of a text or reasoning part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// More text follows.
    Streaming,
    /// The text is complete.
    Done,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPart {
    /// `tool-` and the name of the tool.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of the call.
    pub tool_call_id: String,
    /// The state of the call: `input-streaming`, `input-available`, `approval-requested`, `approval-responded`,
    /// `output-available`, `output-error` or `output-denied`.
    pub state: String,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    /// Whether the server executes the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_executed: Option<bool>,
    /// The approval request, and its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ToolApproval>,
    /// Whether a later result replaces this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preliminary: Option<bool>,
}

/// The approval of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolApproval {
    /// The id of the request.
    pub id: String,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// The reason of the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Data of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataPart {
    /// `data-` and the name of the data.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The data.
    pub data: Value,
}

impl ToolPart {
    /// Creates a call without arguments.
    pub(crate) fn new(id: &str, tool: &str, state: &str) -> Self {
        Self {
            kind: format!("tool-{tool}"),
            tool_call_id: id.to_owned(),
            state: state.to_owned(),
            input: None,
            output: None,
            error_text: None,
            provider_executed: None,
            approval: None,
            preliminary: None,
        }
    }

    /// Returns `true` if the call has a result, an error or a denial.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.state.starts_with("output-") && self.preliminary != Some(true)
    }

    /// Returns the name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.kind.strip_prefix("tool-").unwrap_or(&self.kind)
    }
}
