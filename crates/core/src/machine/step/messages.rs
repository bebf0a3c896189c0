//! Assembly of the messages of a model call.

use serde_json::Value;

use crate::agent::AgentDefinition;
use crate::error::Result;
use crate::id::CallId;
use crate::message::{Message, SharedMessage};
use crate::tool::FINISH_TOOL;

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
