//! The rules of streams, for authors of stores: the state of a stream, and the change that a batch
//! makes to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::contracts::stream::batch::check;
use crate::contracts::stream::{
    Attempt, Batch, BatchReceipt, Boundary, Chunk, ChunkKind, Effect, OpenAttempt,
    SessionWatermark, StreamInfo, StreamOp, Watermark, Writer,
};
use crate::error::Result;
use crate::id::SessionId;
use crate::mutant;

/// The state of a stream that is needed to write to it.
///
/// A store loads the state, [applies](Self::apply) a batch, and saves the state with the
/// [`Change`], all atomically. Settled and discarded attempts are not part of the state, because no
/// more chunks of them are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamState {
    /// The sequence number of the last chunk; 0 if there is none.
    pub last_seq: u64,
    /// The number of the last attempt that was started; 0 if there is none.
    pub last_attempt: u64,
    /// The last watermarks by session; at least that of the batch's writer.
    pub marked: BTreeMap<SessionId, SessionWatermark>,
    /// The attempts that were neither settled nor discarded, in the order in which they started.
    pub open: Vec<OpenAttempt>,
}

/// The change that a batch makes to a stream, to be written by the store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// Whether there is anything to write.
    pub is_changed: bool,
    /// The receipt of the batch.
    pub written: BatchReceipt,
    /// The placed chunks, in order. Their numbers follow those of the existing chunks.
    pub placed: Vec<ChunkPlacement>,
    /// The number of placed chunks.
    pub count: u64,
    /// The attempts whose chunks readers no longer get.
    pub discarded: Vec<Discarded>,
    /// The writer's session, if its watermark changed.
    pub marked: Option<SessionId>,
}

/// Chunks that get a position in the stream. `op` is the index of an operation in its batch.
#[derive(Debug, Clone, PartialEq)]
pub enum ChunkPlacement {
    /// The chunks of a [`StreamOp::Chunks`].
    Chunks {
        /// The index of the operation.
        op: usize,
        /// The attempt that the chunks belong to; `None` for boundaries.
        attempt: Option<Attempt>,
    },
    /// The watermark's boundaries above this version.
    Boundaries {
        /// The index of the operation.
        op: usize,
        /// The version of the previous watermark.
        above: u64,
    },
    /// One announcement, made from the operation's origin.
    Announcement {
        /// The index of the operation.
        op: usize,
        /// The kind of the chunk.
        kind: ChunkKind,
    },
}

/// An attempt that was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discarded {
    /// The number of the attempt.
    pub attempt: Attempt,
    /// The sequence number of the last chunk before the attempt started. Its chunks come after this
    /// one.
    pub start_seq: u64,
    /// The sequence number of the last chunk when the attempt was discarded. Its chunks do not come
    /// after this one.
    pub ended: u64,
}

impl StreamState {
    /// Applies a batch to the state, and returns what else has to be written.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`](crate::error::ErrorCode::InputInvalid) if the batch
    /// refers to an attempt that no earlier operation of it starts, or to a session other than its
    /// writer's. Nothing is changed then.
    pub fn apply(&mut self, batch: &Batch) -> Result<Change> {
        check(batch)?;
        if self.has_superseded(&batch.writer) {
            let last_seq = self.last_seq;
            let written = BatchReceipt { last_seq, is_superseded: true, ..BatchReceipt::default() };
            return Ok(Change { written, ..Change::default() });
        }
        let mut writing = Writing { state: self, writer: &batch.writer, change: Change::default() };
        for (op, operation) in batch.ops.iter().enumerate() {
            match operation {
                StreamOp::Begin { effect, origin } => writing.begin(op, effect, origin),
                StreamOp::Chunks { attempt, chunks } => {
                    let written = &writing.change.written;
                    let attempt = attempt.map(|named| written.attempt(named)).transpose()?;
                    writing.add(op, attempt, chunks);
                }
                StreamOp::Watermark(mark) => writing.mark(op, mark),
            }
        }
        let Writing { state, mut change, .. } = writing;
        change.written.last_seq = state.last_seq;
        Ok(change)
    }

    /// Clears the watermarks and open attempts and keeps the numbers, which continue. The store
    /// must delete the chunks.
    pub fn reset(&mut self) {
        self.marked.clear();
        self.open.clear();
    }

    /// Returns the result of [`info`](crate::stream::StreamManager::info) for a stream that keeps the
    /// chunks after `trimmed`.
    #[must_use]
    pub fn info(self, trimmed: u64) -> StreamInfo {
        let Self { last_seq, marked, open, .. } = self;
        let first_seq = if trimmed < last_seq { trimmed + 1 } else { 0 };
        StreamInfo { first_seq, last_seq, marked, open }
    }

    /// Returns `true` if a later run of the session has a watermark in the stream or an open
    /// attempt.
    fn has_superseded(&self, writer: &Writer) -> bool {
        let marked = self.marked.get(&writer.session).map_or(0, |marked| marked.fencing_token);
        let later = |open: &OpenAttempt| {
            open.session == writer.session && open.fencing_token > writer.fencing_token
        };
        marked > writer.fencing_token || self.open.iter().any(later)
    }

    fn is_open(&self, attempt: Attempt) -> bool {
        self.open.iter().any(|open| open.attempt == attempt)
    }
}

impl Change {
    /// Calls `keep` with each chunk and its attempt, in order. For stores that keep chunks
    /// individually.
    pub fn for_each_chunk(
        &self,
        batch: &[StreamOp],
        mut keep: impl FnMut(Option<Attempt>, Arc<Chunk>),
    ) {
        for placed in &self.placed {
            match (placed, batch.get(placed.op())) {
                (ChunkPlacement::Chunks { attempt, .. }, Some(StreamOp::Chunks { chunks, .. })) => {
                    chunks.iter().for_each(|chunk| keep(*attempt, Arc::clone(chunk)));
                }
                (ChunkPlacement::Boundaries { above, .. }, Some(StreamOp::Watermark(mark))) => {
                    let above = mark.boundaries.iter().filter(|boundary| boundary.version > *above);
                    above.for_each(|boundary| keep(None, Arc::clone(&boundary.chunk)));
                }
                (ChunkPlacement::Announcement { kind, .. }, Some(operation)) => {
                    if let Some(origin) = operation.origin() {
                        let chunk = Chunk { kind: kind.clone(), ..Chunk::clone(origin) };
                        keep(None, Arc::new(chunk));
                    }
                }
                // The placement belongs to another batch.
                _ => {}
            }
        }
    }
}

impl ChunkPlacement {
    pub(super) fn op(&self) -> usize {
        match self {
            Self::Chunks { op, .. }
            | Self::Boundaries { op, .. }
            | Self::Announcement { op, .. } => *op,
        }
    }
}

/// A stream state while a batch is applied to it.
struct Writing<'l> {
    state: &'l mut StreamState,
    writer: &'l Writer,
    change: Change,
}

impl Writing<'_> {
    fn begin(&mut self, op: usize, effect: &Effect, origin: &Chunk) {
        let same = |open: &&OpenAttempt| open.effect == *effect && open.session == origin.session;
        if let Some(earlier) = self.state.open.iter().find(same).map(|open| open.attempt) {
            self.discard(op, &[earlier]);
        }
        self.state.last_attempt += 1;
        let attempt = Attempt(self.state.last_attempt);
        let Writer { session, fencing_token, .. } = self.writer.clone();
        let (effect, start_seq) = (effect.clone(), self.state.last_seq);
        self.state.open.push(OpenAttempt { attempt, session, effect, start_seq, fencing_token });
        self.change.written.started.push(attempt);
        self.change.is_changed = true;
    }

    fn add(&mut self, op: usize, attempt: Option<Attempt>, chunks: &[Arc<Chunk>]) {
        match attempt {
            Some(attempt) if !self.state.is_open(attempt) => {
                self.change.written.refused.push(attempt);
            }
            _ => self.place(ChunkPlacement::Chunks { op, attempt }, chunks.len()),
        }
    }

    fn mark(&mut self, op: usize, mark: &Watermark) {
        let settled = self.close(&mark.settled);
        if !settled.is_empty() {
            let attempts = settled.into_iter().map(|open| open.attempt).collect();
            let kind = ChunkKind::StepCommitted { attempts, version: mark.version };
            self.place(ChunkPlacement::Announcement { op, kind }, 1);
        }
        let is_overtaken = |open: &&OpenAttempt| {
            open.session == self.writer.session && open.fencing_token < self.writer.fencing_token
        };
        let overtaken = self.state.open.iter().filter(is_overtaken).map(|open| open.attempt);
        let discarded: Vec<_> = mark.discarded.iter().copied().chain(overtaken).collect();
        self.discard(op, &discarded);
        let Writer { session, created_at, fencing_token } = self.writer;
        let last = self.state.marked.get(session).copied().unwrap_or_default();
        // A watermark of a deleted session says nothing about the log of its successor.
        let before =
            if last.is_from_session(*created_at) { last } else { SessionWatermark::default() };
        let mut marked = SessionWatermark { fencing_token: *fencing_token, ..before };
        if mark.version > before.version {
            let above = if mutant!("boundaries-repeated") { 0 } else { before.version };
            let is_new = |boundary: &&Boundary| boundary.version > above;
            let new = mark.boundaries.iter().filter(is_new).count();
            self.place(ChunkPlacement::Boundaries { op, above }, new);
            (marked.version, marked.seq) = (mark.version, self.state.last_seq);
        }
        if marked == last {
            return;
        }
        // Most streams contain only one session.
        match self.state.marked.get_mut(session) {
            Some(before) => *before = marked,
            None => drop(self.state.marked.insert(session.clone(), marked)),
        }
        self.change.marked = Some(session.clone());
        self.change.is_changed = true;
    }

    /// Removes those of these attempts that are open from the list, and returns them.
    fn close(&mut self, attempts: &[Attempt]) -> Vec<OpenAttempt> {
        let closed: Vec<OpenAttempt> =
            self.state.open.extract_if(.., |open| attempts.contains(&open.attempt)).collect();
        self.change.is_changed |= !closed.is_empty();
        closed
    }

    /// Discards those of these attempts that are open, and announces that.
    fn discard(&mut self, op: usize, attempts: &[Attempt]) {
        let closed = self.close(attempts);
        if closed.is_empty() {
            return;
        }
        let ended = self.state.last_seq;
        let attempts = closed.iter().map(|open| open.attempt).collect();
        let discarded = closed
            .into_iter()
            .map(|OpenAttempt { attempt, start_seq, .. }| Discarded { attempt, start_seq, ended });
        self.change.discarded.extend(discarded);
        self.place(
            ChunkPlacement::Announcement { op, kind: ChunkKind::StepDiscarded { attempts } },
            1,
        );
    }

    fn place(&mut self, placed: ChunkPlacement, count: usize) {
        if count == 0 {
            return;
        }
        self.state.last_seq += count as u64;
        self.change.count += count as u64;
        self.change.placed.push(placed);
        self.change.is_changed = true;
    }
}

#[cfg(test)]
mod tests;
