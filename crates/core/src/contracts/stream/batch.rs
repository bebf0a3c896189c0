//! Batches of operations that are written to a stream together.

use std::sync::Arc;

use super::{Attempt, Chunk, Effect};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::id::{BatchId, SessionId};

/// A list of stream operations that are written atomically. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The id that identifies the batch when it is retried.
    pub id: BatchId,
    /// The run that writes the batch.
    pub writer: Writer,
    /// The operations, in order.
    pub ops: Arc<[StreamOp]>,
}

impl Batch {
    /// Creates a batch.
    pub fn new(id: BatchId, writer: Writer, ops: impl Into<Arc<[StreamOp]>>) -> Self {
        Self { id, writer, ops: ops.into() }
    }
}

/// The run that writes a batch: a session and the fencing token of one of its runs. Workers of the
/// same run are one writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The session of the run. A child session writes to the stream of its root session.
    pub session: SessionId,
    /// The time when the session was created, by the store's clock. Fencing tokens before it, in
    /// milliseconds, belong to a deleted session with the same id.
    pub created_at: Timestamp,
    /// The run's [fencing token](crate::tool::ToolContext::fencing_token). A later run of the
    /// session has a greater one.
    pub fencing_token: u64,
}

impl Writer {
    /// Creates a writer that is not a run of this session. Every run of the session supersedes it.
    #[must_use]
    pub fn without_run(session: &SessionId) -> Self {
        Self { session: session.clone(), created_at: Timestamp(0), fencing_token: 0 }
    }
}

/// One operation on a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamOp {
    /// Starts an attempt at an effect.
    Begin {
        /// The effect that is attempted.
        effect: Effect,
        /// The template of the chunk that announces the discard of an earlier attempt. Its kind is
        /// ignored. Its session owns the effect.
        origin: Arc<Chunk>,
    },
    /// Writes chunks, in order.
    Chunks {
        /// The attempt that the chunks belong to; `None` for boundaries.
        attempt: Option<AttemptRef>,
        /// The chunks to write.
        chunks: Vec<Arc<Chunk>>,
    },
    /// Brings the stream into line with the log.
    Watermark(Box<Watermark>),
}

impl StreamOp {
    /// Returns the template of the operation's announcements; `None` if it makes none.
    pub(crate) fn origin(&self) -> Option<&Arc<Chunk>> {
        match self {
            Self::Begin { origin, .. } => Some(origin),
            Self::Watermark(mark) => Some(&mark.origin),
            Self::Chunks { .. } => None,
        }
    }
}

/// A reference to an attempt in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptRef {
    /// The attempt with this number.
    Existing(Attempt),
    /// The attempt that a [`Begin`](StreamOp::Begin) of the same batch starts, counted from 0.
    Started(usize),
}

/// The result of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchReceipt {
    /// The sequence number of the stream's last chunk; 0 if it has none.
    pub last_seq: u64,
    /// The attempts that the batch started, in order.
    pub started: Vec<Attempt>,
    /// The attempts whose chunks were dropped, because they were settled, discarded or never
    /// started.
    pub refused: Vec<Attempt>,
    /// Whether a later run of the writer's session has taken over the stream. Nothing of the batch
    /// was written then, and no attempt was started.
    pub is_superseded: bool,
}

/// Checks that every attempt that a batch refers to is started by an earlier operation of it, and
/// that all operations belong to the writer's session.
pub(crate) fn check(batch: &Batch) -> Result<()> {
    let mut started = 0;
    for op in &*batch.ops {
        if op.origin().is_some_and(|origin| origin.session != batch.writer.session) {
            let message = "an operation of the batch belongs to a session other than its writer's";
            return Err(Error::new(ErrorCode::InputInvalid, message));
        }
        match op {
            StreamOp::Begin { .. } => started += 1,
            StreamOp::Chunks { attempt: Some(AttemptRef::Started(index)), .. }
                if *index >= started =>
            {
                return Err(not_started());
            }
            StreamOp::Chunks { .. } | StreamOp::Watermark(_) => {}
        }
    }
    Ok(())
}

fn not_started() -> Error {
    let message = "a batch refers to an attempt that no earlier operation of it starts";
    Error::new(ErrorCode::InputInvalid, message)
}

impl BatchReceipt {
    /// Resolves a reference to an attempt. While a batch is being applied, its receipt covers the
    /// operations so far.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if the batch has not started the attempt.
    pub fn attempt(&self, named: AttemptRef) -> Result<Attempt> {
        let started = match named {
            AttemptRef::Existing(attempt) => Some(attempt),
            AttemptRef::Started(index) => self.started.get(index).copied(),
        };
        started.ok_or_else(not_started)
    }
}

/// An operation that brings a stream into line with the log. It is written after the append whose
/// version it carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Watermark {
    /// The version of the log.
    pub version: u64,
    /// The attempts whose outcome is in the log. They are announced by `step_committed`.
    pub settled: Vec<Attempt>,
    /// The attempts whose outcome will never be in the log. They are announced by `step_discarded`.
    pub discarded: Vec<Attempt>,
    /// The template of the announcements. Its kind is ignored. Its session owns the watermark.
    pub origin: Arc<Chunk>,
    /// The chunks that the log's events show, in log order. They are written after the
    /// announcements. Boundaries up to the last watermark are dropped.
    pub boundaries: Vec<Boundary>,
}

/// A chunk without an attempt, which shows an event of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Boundary {
    /// The log version of the event. It is not above the version of the watermark.
    pub version: u64,
    /// The chunk to show.
    pub chunk: Arc<Chunk>,
}
