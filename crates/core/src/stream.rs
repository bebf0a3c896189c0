//! The live feed of a session, for people to watch: chunks, and the contract of what keeps them.
//!
//! A stream is no durable fact. It may be cut, replayed and trimmed; what really happened is in the
//! log. The two are tied together by marks: a mark says up to which version of the log the stream
//! has been brought into line.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, ErrorRecord, Result};
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

/// An attempt that was neither settled nor discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    /// Its number.
    pub attempt: Attempt,
    /// The session that tries.
    pub session: SessionId,
    /// What it tries.
    pub effect: Effect,
    /// The last chunk before it began; 0 if there was none.
    pub began: u64,
}

/// How far a session's log is known to its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marked {
    /// The version of its last mark.
    pub version: u64,
    /// The last chunk when that was written, what it announced and its boundaries included.
    pub seq: u64,
}

/// How a stream stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamInfo {
    /// The first chunk that is still kept; 0 if there is none.
    pub first_seq: u64,
    /// The last chunk; 0 if there is none.
    pub last_seq: u64,
    /// Each session's last mark: its own, and those of children that show in it.
    pub marked: BTreeMap<SessionId, Marked>,
    /// Attempts that were neither settled nor discarded, in the order in which they began.
    pub open: Vec<OpenAttempt>,
}

impl StreamInfo {
    /// The version of this session's last mark; 0 if there is none.
    #[must_use]
    pub fn marked_by(&self, session: &SessionId) -> u64 {
        self.marked.get(session).map_or(0, |marked| marked.version)
    }
}

/// Brings a stream into line with the log: written after the append whose version it carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// The log's version.
    pub version: u64,
    /// Attempts whose outcome is in the log. Announced by `step_committed`.
    pub settled: Vec<Attempt>,
    /// Attempts whose outcome never will be. Announced by `step_discarded`.
    pub discarded: Vec<Attempt>,
    /// The chunk that announces, without its kind: whose mark it is.
    pub origin: Chunk,
    /// What the log's events show, in their order, written after the announcements; those up to
    /// the last mark are left out.
    pub boundaries: Vec<Boundary>,
}

/// A chunk without an attempt: something that the log itself shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Boundary {
    /// The log's version with the event that it shows; not above the mark's.
    pub version: u64,
    /// The chunk.
    pub chunk: Chunk,
}

/// Chunks as they come; ends only with an error or when it is dropped.
pub type ChunkStream = BoxStream<'static, Result<StoredChunk>>;

/// One thing to write into a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamOp {
    /// Begins a try at an effect.
    Begin {
        /// What is tried.
        effect: Effect,
        /// The chunk that announces the discard of an earlier try, without its kind: whose effect
        /// it is.
        origin: Chunk,
    },
    /// Writes chunks, in order.
    Chunks {
        /// The attempt that they belong to; none for boundaries.
        attempt: Option<AttemptRef>,
        /// The chunks.
        chunks: Vec<Chunk>,
    },
    /// Brings the stream into line with the log.
    Mark(Box<Mark>),
}

/// An attempt, as a batch names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptRef {
    /// By its number.
    Known(Attempt),
    /// The one begun by this [`Begin`](StreamOp::Begin) of the same batch, counted from 0.
    Begun(usize),
}

/// What came of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// The stream's last chunk; 0 if it has none.
    pub last_seq: u64,
    /// The attempts that the batch began, in order.
    pub begun: Vec<Attempt>,
    /// The attempts whose chunks were left out, because they were settled, discarded or never
    /// begun.
    pub refused: Vec<Attempt>,
}

/// Checks that a batch names no attempt before it begins it. For stores, before they write.
///
/// # Errors
/// [`ErrorCode::InputInvalid`].
pub fn check_batch(batch: &[StreamOp]) -> Result<()> {
    let mut begun = 0;
    for op in batch {
        match op {
            StreamOp::Begin { .. } => begun += 1,
            StreamOp::Chunks { attempt: Some(AttemptRef::Begun(index)), .. } if *index >= begun => {
                return Err(not_begun());
            }
            StreamOp::Chunks { .. } | StreamOp::Mark(_) => {}
        }
    }
    Ok(())
}

fn not_begun() -> Error {
    let message = "a batch names an attempt that it does not begin before";
    Error::new(ErrorCode::InputInvalid, message)
}

impl Written {
    /// The attempt that a batch means, of which so much was written already. For stores.
    ///
    /// # Errors
    /// [`ErrorCode::InputInvalid`] if the batch has not begun it; see [`check_batch`].
    pub fn attempt(&self, named: AttemptRef) -> Result<Attempt> {
        let begun = match named {
            AttemptRef::Known(attempt) => Some(attempt),
            AttemptRef::Begun(index) => self.begun.get(index).copied(),
        };
        begun.ok_or_else(not_begun)
    }
}

/// What keeps streams.
///
/// # Contract
///
/// `stream_suite!` of `helix-agents-testkit` is the executable form of this section.
///
/// - Sequence numbers start at 1 and have no gaps as written. They become visible in order: who
///   saw n never later finds something below n.
/// - What one [`write`](Self::write) is given is written in order and together: all of it, or, if
///   it fails, nothing.
/// - Sessions of one tree share the root's stream. Effects and marks of one are nothing to another:
///   whose they are says the session of their `origin`.
/// - [`Begin`](StreamOp::Begin) discards an earlier open attempt at the same effect, announces
///   that by a `step_discarded` chunk, and gets a higher number.
/// - Chunks of an attempt that was settled, discarded or never begun are left out and the attempt
///   is named as [refused](Written::refused), so a replaced owner cannot write into its
///   successor's stream. The rest of the batch is written.
/// - Chunks of a settled attempt are never discarded. Chunks without an attempt (boundaries)
///   survive every discard.
/// - [`read`](Self::read) first catches up and then follows, without gap or duplicate. It leaves
///   out chunks of attempts that are discarded by the time they are read; a reader that already
///   saw some of them gets the announcement.
/// - A reader that asks for chunks which were trimmed gets one `stream_resync` chunk, whose `seq`
///   is the last trimmed one, and then what is kept. So does one whose cursor lies beyond the next
///   chunk: it is of another life of the stream, and the `seq` is that of the last chunk.
/// - A stream that was never written to reads as empty and then follows.
/// - A slow reader never slows a writer: a reader that falls behind catches up from what is kept.
/// - Marks never go back: one whose version is not above the last is taken for its attempts only.
///   Boundaries of versions up to the last mark are there already and are left out one by one, so
///   that two who bring a stream into line at once, each as far as it sees, show nothing twice.
///
/// # Durability
///
/// None promised beyond the process. A store may keep streams as durably as it likes.
#[async_trait]
pub trait StreamManager: fmt::Debug + Send + Sync + 'static {
    /// Writes a batch. One round trip, whatever is in it.
    ///
    /// # Errors
    /// [`ErrorCode::InputInvalid`] if it names an attempt that it does not begin before, and those
    /// of the backend.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the batch was written; never a part of it.
    async fn write(&self, stream: &SessionId, batch: Vec<StreamOp>) -> Result<Written>;

    /// Chunks from `from` on (1 or 0: from the beginning), first those that are kept, then live.
    ///
    /// # Errors
    /// Those of the backend.
    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream>;

    /// How the stream stands.
    ///
    /// # Errors
    /// Those of the backend.
    async fn info(&self, stream: &SessionId) -> Result<StreamInfo>;

    /// Forgets the stream. Sequence numbers go on from where they were, so that an old cursor
    /// never points into new chunks; a reader with one gets `stream_resync`.
    ///
    /// # Errors
    /// Those of the backend.
    async fn reset(&self, stream: &SessionId) -> Result<()>;
}

/// Batches of one operation, for those who do not write many.
impl dyn StreamManager + '_ {
    /// Begins a try at an effect.
    ///
    /// # Errors
    /// As [`write`](StreamManager::write).
    pub async fn begin(
        &self,
        stream: &SessionId,
        effect: &Effect,
        origin: Chunk,
    ) -> Result<Attempt> {
        let effect = effect.clone();
        let written = self.write(stream, vec![StreamOp::Begin { effect, origin }]).await?;
        written.attempt(AttemptRef::Begun(0))
    }

    /// Writes chunks; answers the sequence number of the last one.
    ///
    /// # Errors
    /// [`ErrorCode::AttemptDiscarded`] if the attempt is not open, and as
    /// [`write`](StreamManager::write).
    pub async fn append(
        &self,
        stream: &SessionId,
        attempt: Option<Attempt>,
        chunks: Vec<Chunk>,
    ) -> Result<u64> {
        let op = StreamOp::Chunks { attempt: attempt.map(AttemptRef::Known), chunks };
        let written = self.write(stream, vec![op]).await?;
        match written.refused.first() {
            None => Ok(written.last_seq),
            Some(attempt) => {
                let message = "the attempt was settled, discarded or never begun";
                Err(Error::new(ErrorCode::AttemptDiscarded, message)
                    .with_context("session", stream)
                    .with_context("attempt", attempt.0))
            }
        }
    }

    /// Brings the stream into line with the log.
    ///
    /// # Errors
    /// As [`write`](StreamManager::write).
    pub async fn mark(&self, stream: &SessionId, mark: Mark) -> Result<()> {
        self.write(stream, vec![StreamOp::Mark(Box::new(mark))]).await.map(drop)
    }
}
