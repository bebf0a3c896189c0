//! Chunks: the visible events of a stream, and the attempts that they belong to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::ErrorRecord;
use crate::id::{CallId, RunId, SessionId};
use crate::state::Patch;
use crate::usage::Usage;

/// One visible event and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session that the chunk comes from. The chunks of a child are in the stream of its root
    /// session.
    pub session: SessionId,
    /// The id of the run.
    pub run: RunId,
    /// The number of the step; 0 outside of steps.
    pub step: u32,
    /// The time by the writer's clock, for display only.
    pub at: Timestamp,
    /// The event that the chunk shows.
    #[serde(flatten)]
    pub kind: ChunkKind,
}

/// The event that a chunk shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChunkKind {
    /// A run started.
    RunStarted {
        /// The number of the turn that the run works on, from 1; 0 in a stream of an earlier build.
        #[serde(default, skip_serializing_if = "is_zero")]
        turn: u32,
    },
    /// A run started without starting a turn: it resumes or recovers a turn, or aborts the session.
    RunResumed,
    /// A run ended as completed, failed or aborted.
    RunEnded {
        /// The status of the run: `completed`, `failed` or `aborted`.
        status: String,
        /// The [token usage of the turn](crate::session::Session::turn_usage); `None` in a stream of an earlier build.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A run ended because it was interrupted.
    RunInterrupted {
        /// The reason that was given with the request.
        reason: Option<String>,
    },
    /// A run was suspended.
    RunSuspended {
        /// The pending calls.
        calls: Vec<CallId>,
        /// The earliest deadline of the pending calls, by the store's clock.
        deadline: Option<Timestamp>,
    },
    /// A piece of the model's text.
    TextDelta {
        /// The next piece of the text.
        delta: String,
    },
    /// Reasoning of the model.
    Thinking {
        /// The next piece of the reasoning, or the whole reasoning if `complete`.
        content: String,
        /// Whether `content` is the whole text rather than a piece.
        complete: bool,
    },
    /// The model started to write the arguments of a call.
    ToolArgStart {
        /// The position of the call in the reply, from 0.
        index: u32,
        /// The tool's name as the model wrote it.
        tool: Arc<str>,
    },
    /// The model wrote more of the arguments of a call.
    ToolArgDelta {
        /// The position of the call in the reply, from 0.
        index: u32,
        /// The next piece of the arguments as JSON text.
        delta: String,
    },
    /// A tool is about to run, or a call of a client tool waits for its result.
    ToolStart {
        /// The id of the call.
        call: CallId,
        /// The name of the tool.
        tool: Arc<str>,
        /// The arguments as JSON text.
        arguments: String,
        /// Whether the call waits for its result from a client, which executes the tool.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        client: bool,
    },
    /// A call waits for an approval.
    ToolApprovalRequest {
        /// The id of the call.
        call: CallId,
        /// The name of the tool.
        tool: Arc<str>,
        /// The arguments as JSON text.
        arguments: String,
        /// The digest of the arguments. An approval refers to it, so that it applies only to the
        /// arguments that were shown.
        digest: String,
        /// Whether the approver may change the arguments.
        editable: bool,
        /// The deadline of the approval, by the store's clock.
        deadline: Option<Timestamp>,
    },
    /// A tool reports its progress.
    ToolProgress {
        /// The id of the call.
        call: CallId,
        /// The message for the user.
        message: String,
        /// The completed fraction between 0 and 1, if known.
        fraction: Option<f64>,
    },
    /// A call has its result.
    ToolEnd {
        /// The id of the call.
        call: CallId,
        /// The name of the tool.
        tool: Arc<str>,
        /// Whether the tool returned without an error.
        success: bool,
        /// The result as JSON text, if it succeeded.
        result: Option<String>,
    },
    /// A call failed; a `tool_end` follows.
    ToolError {
        /// The id of the call.
        call: CallId,
        /// The name of the tool.
        tool: Arc<str>,
        /// The error of the call.
        error: ErrorRecord,
    },
    /// A sub-agent starts.
    SubagentStart {
        /// The call of the chunk's session that the sub-agent is for.
        call: CallId,
        /// The name of the sub-agent.
        subagent: Arc<str>,
        /// The sub-agent's session. Its chunks follow.
        child: SessionId,
        /// The arguments of the call as JSON text; empty in a stream of an earlier build.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
        /// The name of the companion, if the sub-agent is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        companion: Option<String>,
    },
    /// A sub-agent has ended; the `tool_end` of its call follows.
    SubagentEnd {
        /// The call of the chunk's session that the sub-agent was for.
        call: CallId,
        /// The name of the sub-agent.
        subagent: Arc<str>,
        /// The sub-agent's session.
        child: SessionId,
        /// Whether the sub-agent completed.
        success: bool,
    },
    /// A custom event that a tool or hook emits.
    Custom {
        /// The name of the event.
        name: String,
        /// The data of the event as JSON text.
        data: String,
    },
    /// The custom state changed.
    StatePatch {
        /// The change of the state.
        patch: Patch,
    },
    /// The outcome of these attempts is now in the log.
    StepCommitted {
        /// The settled attempts.
        attempts: Vec<Attempt>,
        /// The version of the log.
        version: u64,
    },
    /// The outcome of these attempts will never be in the log. Discard their chunks.
    StepDiscarded {
        /// The discarded attempts.
        attempts: Vec<Attempt>,
    },
    /// A step was closed. The session can be forked or rewound to this point.
    Checkpoint {
        /// The version of the log.
        version: u64,
    },
    /// The output of the turn.
    Output {
        /// The output as JSON text.
        output: String,
    },
    /// The run failed.
    Error {
        /// The error of the run.
        error: ErrorRecord,
    },
    /// Chunks between the reader's position and this one are not available: the stream was trimmed,
    /// reset or deleted. Read the session's log, then continue from here.
    StreamResync,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl ChunkKind {
    /// Returns `true` for the last chunk of a run.
    #[must_use]
    pub fn ends_run(&self) -> bool {
        matches!(
            self,
            Self::RunEnded { .. } | Self::RunInterrupted { .. } | Self::RunSuspended { .. }
        )
    }
}

/// The number of one attempt at an effect within a stream. Later attempts have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u64);

/// An effect that can be attempted and whose attempts can be discarded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The model call of a step.
    Model {
        /// The number of the step.
        step: u32,
    },
    /// One tool call.
    Tool {
        /// The id of the call.
        call: CallId,
    },
    /// The start of a child session.
    Child {
        /// The call that the child is for.
        call: CallId,
    },
}

/// A chunk with its position in the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredChunk {
    /// The sequence number, from 1, without gaps when written. A replay omits discarded chunks and
    /// never renumbers the others.
    pub seq: u64,
    /// The attempt that the chunk belongs to; `None` for boundaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// The chunk at this position.
    #[serde(flatten)]
    pub chunk: Arc<Chunk>,
}

#[cfg(test)]
mod tests;
