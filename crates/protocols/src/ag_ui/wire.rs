//! The events of AG-UI.

use helix_agents_core::state::Patch;
use serde::Serialize;
use serde_json::Value;

use super::Message;

/// An event of AG-UI. Absent members are not written, because the client refuses `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// The run starts.
    RunStarted {
        /// The session.
        thread_id: String,
        /// The run that the client asked for.
        run_id: String,
        /// The version of the protocol.
        protocol_version: &'static str,
    },
    /// The run ends without an error.
    RunFinished {
        /// The session.
        thread_id: String,
        /// The run that the client asked for.
        run_id: String,
        /// The output of the turn, unless it is the text of the last message.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The outcome.
        outcome: Outcome,
        /// The token usage of the turn, if it is complete: one element, or none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<Value>,
    },
    /// The run failed.
    RunError {
        /// The error for the user.
        message: String,
        /// The stable code of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// A step starts.
    StepStarted {
        /// The name of the step.
        step_name: String,
    },
    /// A step ends.
    StepFinished {
        /// The name of the step.
        step_name: String,
    },
    /// A text message starts.
    TextMessageStart {
        /// The id of the message. The text of a message that exists continues.
        message_id: String,
        /// The author.
        role: &'static str,
    },
    /// The next piece of a text message.
    TextMessageContent {
        /// The id of the message.
        message_id: String,
        /// The piece.
        delta: String,
    },
    /// A text message ends.
    TextMessageEnd {
        /// The id of the message.
        message_id: String,
    },
    /// Reasoning starts.
    ReasoningStart {
        /// The id of the reasoning message.
        message_id: String,
    },
    /// A reasoning message starts.
    ReasoningMessageStart {
        /// The id of the message.
        message_id: String,
        /// The role, which is `reasoning`.
        role: &'static str,
    },
    /// The next piece of a reasoning message.
    ReasoningMessageContent {
        /// The id of the message.
        message_id: String,
        /// The piece.
        delta: String,
    },
    /// A reasoning message ends.
    ReasoningMessageEnd {
        /// The id of the message.
        message_id: String,
    },
    /// Reasoning ends.
    ReasoningEnd {
        /// The id of the reasoning message.
        message_id: String,
    },
    /// A tool call starts.
    ToolCallStart {
        /// The id of the call.
        tool_call_id: String,
        /// The name of the tool.
        tool_call_name: String,
        /// The message that contains the call.
        parent_message_id: String,
    },
    /// The next piece of a call's arguments.
    ToolCallArgs {
        /// The id of the call.
        tool_call_id: String,
        /// The piece of JSON text.
        delta: String,
    },
    /// The arguments of a call are complete.
    ToolCallEnd {
        /// The id of the call.
        tool_call_id: String,
    },
    /// A call has a result.
    ToolCallResult {
        /// The id of the message with the result.
        message_id: String,
        /// The id of the call.
        tool_call_id: String,
        /// The result as text.
        content: String,
        /// The role, which is `tool`.
        role: &'static str,
        /// The `code` of the error, if the call failed, and the `arguments`, if the approver changed them.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// The custom state of the session.
    StateSnapshot {
        /// The state.
        snapshot: Value,
    },
    /// A change of the custom state.
    StateDelta {
        /// The change.
        delta: Patch,
    },
    /// The messages of the session. They replace those of the client.
    MessagesSnapshot {
        /// The messages, oldest first.
        messages: Vec<Message>,
    },
    /// An event of the application.
    Custom {
        /// The name of the event.
        name: String,
        /// The data of the event.
        value: Value,
    },
    /// A sub-agent starts.
    SubagentStarted {
        /// The id of the sub-agent, which is its session.
        subagent_run_id: String,
        /// The name of the sub-agent.
        name: String,
        /// The call that started it, if the call is shown.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
        /// The sub-agent that started it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<String>,
    },
    /// A sub-agent has ended or waits.
    SubagentFinished {
        /// The id of the sub-agent.
        subagent_run_id: String,
        /// The outcome.
        outcome: SubAgentOutcome,
    },
    /// A sub-agent failed.
    SubagentError {
        /// The id of the sub-agent.
        subagent_run_id: String,
        /// The error for the user.
        message: String,
    },
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// The turn is complete, or waits only for tools of the client.
    Success {
        /// The calls whose results the client sends with its next run.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    /// The turn waits. The next run has to answer all interrupts.
    Interrupt {
        /// The questions, at least one.
        interrupts: Vec<Interrupt>,
    },
    /// The run was stopped.
    Cancelled,
}

/// A question that the next run has to answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// The id of the question.
    pub id: String,
    /// The reason: `tool_call`, or `awaiting_children` if only sub-agents are waited for.
    pub reason: String,
    /// The call that the question is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// The deadline of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// The outcome of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SubAgentOutcome {
    /// It has completed its work.
    Success,
    /// It continues in a later run.
    Suspended,
}
