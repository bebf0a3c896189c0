//! The messages of AG-UI.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Message {
    /// A message of the user.
    User {
        /// The id of the message.
        id: String,
        /// The content.
        content: UserContent,
    },
    /// A reply of the model in one step.
    Assistant {
        /// The id of the message.
        id: String,
        /// The text, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// The calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// The result of a call.
    Tool {
        /// The id of the message.
        id: String,
        /// The id of the call.
        tool_call_id: String,
        /// The result as text.
        content: UserContent,
        /// The error, if a client's tool failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The `code` of the error, if the call failed, and the `arguments`, if the approver changed them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// Reasoning of the model in one step.
    Reasoning {
        /// The id of the message.
        id: String,
        /// The text.
        content: String,
    },
}

/// The content of a message: a text, or parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UserContent {
    /// A text.
    Text(String),
    /// Texts and files in order.
    Parts(Vec<Value>),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id of the call.
    pub id: String,
    /// The kind of the call, which is `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The tool and its arguments.
    pub function: FunctionCall,
}

/// The tool of a call and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

impl Message {
    /// Returns the id of the message.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::User { id, .. }
            | Self::Assistant { id, .. }
            | Self::Tool { id, .. }
            | Self::Reasoning { id, .. } => id,
        }
    }
}
