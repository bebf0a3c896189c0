//! Batches: what is written into a stream in one go.

use std::sync::Arc;

use super::{Attempt, Chunk, Effect};
use crate::error::{Error, ErrorCode, Result};
use crate::id::{BatchId, SessionId};

/// What is written in one go. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// By which it is known again.
    pub id: BatchId,
    /// The run that writes it.
    pub writer: Writer,
    /// What to write, in order.
    pub ops: Arc<[StreamOp]>,
}

impl Batch {
    /// These operations of this writer under this id.
    pub fn new(id: BatchId, writer: Writer, ops: impl Into<Arc<[StreamOp]>>) -> Self {
        Self { id, writer, ops: ops.into() }
    }
}

/// The run that writes a batch: a session, and which of its runs. Workers of the same run are one writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The session whose run it is; a child writes to the stream of its root.
    pub session: SessionId,
    /// The run's [fencing token](crate::tool::ToolContext::fencing_token). A later run of the session has a
    /// greater one.
    pub fencing_token: u64,
}

impl Writer {
    /// A writer that is no run of this session. Every run of the session supersedes it.
    #[must_use]
    pub fn without_run(session: &SessionId) -> Self {
        Self { session: session.clone(), fencing_token: 0 }
    }
}

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
    Watermark(Box<Watermark>),
}

impl StreamOp {
    /// The chunk that its announcements look like; none if it makes none.
    pub(super) fn origin(&self) -> Option<&Chunk> {
        match self {
            Self::Begin { origin, .. } => Some(origin),
            Self::Watermark(mark) => Some(&mark.origin),
            Self::Chunks { .. } => None,
        }
    }
}

/// An attempt, as a batch names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptRef {
    /// By its number.
    Existing(Attempt),
    /// The one begun by this [`Begin`](StreamOp::Begin) of the same batch, counted from 0.
    Started(usize),
}

/// What came of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchReceipt {
    /// The stream's last chunk; 0 if it has none.
    pub last_seq: u64,
    /// The attempts that the batch began, in order.
    pub begun: Vec<Attempt>,
    /// The attempts whose chunks were left out, because they were settled, discarded or never
    /// begun.
    pub refused: Vec<Attempt>,
    /// Whether a later run of the writer's session has taken over the stream: nothing of the batch was written
    /// then, and no attempt was begun.
    pub is_superseded: bool,
}

/// Checks that a batch names no attempt before it begins it, and that all of it is of its writer's session.
pub(super) fn check(batch: &Batch) -> Result<()> {
    let mut begun = 0;
    for op in &*batch.ops {
        if op.origin().is_some_and(|origin| origin.session != batch.writer.session) {
            let message = "an operation of a batch is of another session than its writer";
            return Err(Error::new(ErrorCode::InputInvalid, message));
        }
        match op {
            StreamOp::Begin { .. } => begun += 1,
            StreamOp::Chunks { attempt: Some(AttemptRef::Started(index)), .. }
                if *index >= begun =>
            {
                return Err(not_begun());
            }
            StreamOp::Chunks { .. } | StreamOp::Watermark(_) => {}
        }
    }
    Ok(())
}

fn not_begun() -> Error {
    let message = "a batch names an attempt that it does not begin before";
    Error::new(ErrorCode::InputInvalid, message)
}

impl BatchReceipt {
    /// The attempt that a batch means, of which so much was written already.
    ///
    /// # Errors
    /// [`ErrorCode::InputInvalid`] if the batch has not begun it.
    pub fn attempt(&self, named: AttemptRef) -> Result<Attempt> {
        let begun = match named {
            AttemptRef::Existing(attempt) => Some(attempt),
            AttemptRef::Started(index) => self.begun.get(index).copied(),
        };
        begun.ok_or_else(not_begun)
    }
}

/// Brings a stream into line with the log: written after the append whose version it carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Watermark {
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
