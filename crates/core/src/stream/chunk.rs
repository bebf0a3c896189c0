//! Chunks: what there is to see, and which try at what it belongs to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::ErrorRecord;
use crate::id::{CallId, RunId, SessionId};
use crate::state::Patch;

/// One thing to show, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session that it comes from; a child's chunks stand in its root's stream.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The step; 0 outside of steps.
    pub step: u32,
    /// When, by the writer's clock: for display only.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub kind: ChunkKind,
}

/// What a chunk shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChunkKind {
    /// A run began.
    RunStarted,
    /// A run that goes on after an interruption, a failure or a crash began.
    RunResumed,
    /// A run ended as completed, failed or aborted; `status` says which.
    RunEnded {
        /// `completed`, `failed` or `aborted`.
        status: String,
    },
    /// A run ended because it was interrupted.
    RunInterrupted {
        /// As given with the request.
        reason: Option<String>,
    },
    /// A run ended because it has to wait.
    RunSuspended {
        /// The calls that wait for people.
        calls: Vec<CallId>,
        /// Until when the first of them has to be answered, by the store's clock.
        deadline: Option<Timestamp>,
    },
    /// Text of the model.
    TextDelta {
        /// The next piece.
        delta: String,
    },
    /// Reasoning of the model.
    Thinking {
        /// The next piece, or all of it if `complete`.
        content: String,
        /// Whether this is the whole text rather than a piece.
        complete: bool,
    },
    /// The model began to write a call's arguments.
    ToolArgStart {
        /// The call's place in the reply, from 0.
        index: u32,
        /// The tool's name as the model wrote it.
        tool: Arc<str>,
    },
    /// The model wrote more of a call's arguments.
    ToolArgDelta {
        /// The call's place in the reply, from 0.
        index: u32,
        /// The next piece of JSON text.
        delta: String,
    },
    /// A tool is about to run.
    ToolStart {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// A call waits for somebody to approve it.
    ToolApprovalRequest {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments as JSON text.
        arguments: String,
        /// A digest of the arguments, to answer to what was seen.
        digest: String,
        /// Whether the arguments may be changed.
        editable: bool,
        /// Until when it can be answered, by the store's clock.
        deadline: Option<Timestamp>,
    },
    /// A tool says how far it is.
    ToolProgress {
        /// The call.
        call: CallId,
        /// For people.
        message: String,
        /// Between 0 and 1, if known.
        fraction: Option<f64>,
    },
    /// A call has its result.
    ToolEnd {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// Whether the tool returned without an error.
        success: bool,
        /// The result as JSON text, if it succeeded.
        result: Option<String>,
    },
    /// A call failed; a `tool_end` follows.
    ToolError {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// Why.
        error: ErrorRecord,
    },
    /// A sub-agent begins.
    SubagentStart {
        /// The call that it is for, of the chunk's session.
        call: CallId,
        /// Its agent's name.
        subagent: Arc<str>,
        /// Its session, of which chunks follow.
        child: SessionId,
    },
    /// A sub-agent has ended; the `tool_end` of its call follows.
    SubagentEnd {
        /// The call that it was for, of the chunk's session.
        call: CallId,
        /// Its agent's name.
        subagent: Arc<str>,
        /// Its session.
        child: SessionId,
        /// Whether it completed.
        success: bool,
    },
    /// Whatever a tool or hook emits.
    Custom {
        /// Its name.
        name: String,
        /// Its data as JSON text.
        data: String,
    },
    /// The custom state changed.
    StatePatch {
        /// How.
        patch: Patch,
    },
    /// What these attempts showed is now in the log.
    StepCommitted {
        /// The attempts.
        attempts: Vec<Attempt>,
        /// The log's version.
        version: u64,
    },
    /// What these attempts showed did not come to be: forget it.
    StepDiscarded {
        /// The attempts.
        attempts: Vec<Attempt>,
    },
    /// A step was closed; the session can be read back or forked here.
    Checkpoint {
        /// The log's version.
        version: u64,
    },
    /// The output of the turn.
    Output {
        /// As JSON text.
        output: String,
    },
    /// The run failed.
    Error {
        /// Why.
        error: ErrorRecord,
    },
    /// Chunks before this one were trimmed away: read the session's log, then go on from here.
    StreamResync,
}

impl ChunkKind {
    /// Whether it is the last chunk of a run.
    #[must_use]
    pub fn ends_run(&self) -> bool {
        matches!(
            self,
            Self::RunEnded { .. } | Self::RunInterrupted { .. } | Self::RunSuspended { .. }
        )
    }
}

/// The number of one try at one effect within a stream. Later tries have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u64);

/// What is tried: the unit of discard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The model call of a step.
    Model {
        /// The step.
        step: u32,
    },
    /// One tool call.
    Tool {
        /// The call.
        call: CallId,
    },
    /// The beginning of a child.
    Child {
        /// The call that it is for.
        call: CallId,
    },
}

/// A chunk in its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredChunk {
    /// Its place, from 1, gapless as written. A replay leaves out discarded chunks and never
    /// renumbers the rest.
    pub seq: u64,
    /// The attempt it belongs to; none for boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// The chunk.
    #[serde(flatten)]
    pub chunk: Arc<Chunk>,
}
