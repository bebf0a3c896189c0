//! The rules of streams, for those who write a store: how a stream stands, and what a batch makes of it.

use std::collections::BTreeMap;

use super::batch::check;
use super::{
    Attempt, Batch, BatchReceipt, Boundary, Chunk, ChunkKind, Effect, Marked, OpenAttempt,
    StreamInfo, StreamOp, Watermark, Writer,
};
use crate::error::Result;
use crate::id::SessionId;
use crate::mutant;

/// How a stream stands: what has to be known of it to write to it.
///
/// A store loads it, [applies](Self::apply) a batch, and saves it with what the [`Change`] says, all
/// at one moment. Attempts that were settled or discarded need not be known: no more chunks of them
/// are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamState {
    /// The last chunk; 0 if there is none.
    pub last_seq: u64,
    /// The last attempt that was begun; 0 if none was.
    pub last_attempt: u64,
    /// Last marks by session: that of the batch's writer, at least.
    pub marked: BTreeMap<SessionId, Marked>,
    /// Attempts that were neither settled nor discarded, in the order in which they began.
    pub open: Vec<OpenAttempt>,
}

/// What a batch made of a stream: what is to be written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// Whether anything is to be written at all.
    pub is_changed: bool,
    /// The answer to the batch.
    pub written: BatchReceipt,
    /// Its chunks, in order; they have the numbers after those that were there before.
    pub placed: Vec<ChunkPlacement>,
    /// How many chunks these are.
    pub count: u64,
    /// Attempts whose chunks readers no longer get.
    pub discarded: Vec<Discarded>,
    /// The writer's session, if its mark is another one than before.
    pub marked: Option<SessionId>,
}

/// Chunks that get a place in the stream. `op` is the place of an operation in its batch.
#[derive(Debug, Clone, PartialEq)]
pub enum ChunkPlacement {
    /// Those of [`StreamOp::Chunks`].
    Chunks {
        /// The operation.
        op: usize,
        /// Whose they are; none for boundaries.
        attempt: Option<Attempt>,
    },
    /// Those of the mark's boundaries that lie above this version.
    Boundaries {
        /// The operation.
        op: usize,
        /// The version of the last mark before.
        above: u64,
    },
    /// One chunk that looks like the operation's origin, but for its kind.
    Announcement {
        /// The operation.
        op: usize,
        /// The kind.
        kind: ChunkKind,
    },
}

/// An attempt that was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discarded {
    /// The attempt.
    pub attempt: Attempt,
    /// The last chunk before it began: its chunks come after it.
    pub began: u64,
    /// The last chunk when it was discarded: its chunks do not come after it.
    pub ended: u64,
}

impl StreamState {
    /// Changes it as the batch says, and answers what else has to be written.
    ///
    /// # Errors
    /// [`ErrorCode::InputInvalid`](crate::error::ErrorCode::InputInvalid) if the batch names an
    /// attempt that it does not begin before, or another session than its writer's; nothing is changed then.
    pub fn apply(&mut self, batch: &Batch) -> Result<Change> {
        check(batch)?;
        if self.has_superseded(&batch.writer) {
            let last_seq = self.last_seq;
            let written = BatchReceipt { last_seq, is_superseded: true, ..BatchReceipt::default() };
            return Ok(Change { written, ..Change::default() });
        }
        let mut writing =
            Writing { ledger: self, writer: &batch.writer, change: Change::default() };
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
        let Writing { ledger, mut change, .. } = writing;
        change.written.last_seq = ledger.last_seq;
        Ok(change)
    }

    /// Forgets all but the numbers from which it goes on. The chunks are to be removed.
    pub fn reset(&mut self) {
        self.marked.clear();
        self.open.clear();
    }

    /// What [`info`](super::StreamManager::info) answers if chunks are kept after that one.
    #[must_use]
    pub fn info(self, trimmed: u64) -> StreamInfo {
        let Self { last_seq, marked, open, .. } = self;
        let first_seq = if trimmed < last_seq { trimmed + 1 } else { 0 };
        StreamInfo { first_seq, last_seq, marked, open }
    }

    /// Returns `true` if a later run of the session has marked the stream or has an open attempt.
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
    /// The chunks with their attempts, one by one, for a store that keeps them so.
    pub fn chunks<'a>(
        &'a self,
        batch: &'a [StreamOp],
    ) -> impl Iterator<Item = (Option<Attempt>, Chunk)> + 'a {
        self.placed.iter().flat_map(|placed| placed.chunks(batch))
    }
}

impl ChunkPlacement {
    fn chunks(&self, batch: &[StreamOp]) -> Vec<(Option<Attempt>, Chunk)> {
        match (self, batch.get(self.op())) {
            (Self::Chunks { attempt, .. }, Some(StreamOp::Chunks { chunks, .. })) => {
                chunks.iter().map(|chunk| (*attempt, chunk.clone())).collect()
            }
            (Self::Boundaries { above, .. }, Some(StreamOp::Watermark(mark))) => {
                let above = mark.boundaries.iter().filter(|it| it.version > *above);
                above.map(|boundary| (None, boundary.chunk.clone())).collect()
            }
            (Self::Announcement { kind, .. }, Some(operation)) => {
                let origin = operation.origin().cloned();
                let chunk = origin.map(|origin| Chunk { kind: kind.clone(), ..origin });
                chunk.map(|chunk| (None, chunk)).into_iter().collect()
            }
            // Of another batch.
            _ => Vec::new(),
        }
    }

    pub(super) fn op(&self) -> usize {
        match self {
            Self::Chunks { op, .. }
            | Self::Boundaries { op, .. }
            | Self::Announcement { op, .. } => *op,
        }
    }
}

/// A ledger while a batch is applied to it.
struct Writing<'l> {
    ledger: &'l mut StreamState,
    writer: &'l Writer,
    change: Change,
}

impl Writing<'_> {
    fn begin(&mut self, op: usize, effect: &Effect, origin: &Chunk) {
        let same = |open: &&OpenAttempt| open.effect == *effect && open.session == origin.session;
        if let Some(earlier) = self.ledger.open.iter().find(same).map(|open| open.attempt) {
            self.discard(op, &[earlier]);
        }
        self.ledger.last_attempt += 1;
        let attempt = Attempt(self.ledger.last_attempt);
        let Writer { session, fencing_token } = self.writer.clone();
        let (effect, began) = (effect.clone(), self.ledger.last_seq);
        self.ledger.open.push(OpenAttempt { attempt, session, effect, began, fencing_token });
        self.change.written.begun.push(attempt);
        self.change.is_changed = true;
    }

    fn add(&mut self, op: usize, attempt: Option<Attempt>, chunks: &[Chunk]) {
        match attempt {
            Some(attempt) if !self.ledger.is_open(attempt) => {
                self.change.written.refused.push(attempt);
            }
            _ => self.place(ChunkPlacement::Chunks { op, attempt }, chunks.len()),
        }
    }

    fn mark(&mut self, op: usize, mark: &Watermark) {
        let settled = self.close(&mark.settled);
        if !settled.is_empty() {
            let attempts = settled.into_iter().map(|it| it.attempt).collect();
            let kind = ChunkKind::StepCommitted { attempts, version: mark.version };
            self.place(ChunkPlacement::Announcement { op, kind }, 1);
        }
        let is_overtaken = |open: &&OpenAttempt| {
            open.session == self.writer.session && open.fencing_token < self.writer.fencing_token
        };
        let overtaken = self.ledger.open.iter().filter(is_overtaken).map(|open| open.attempt);
        let discarded: Vec<_> = mark.discarded.iter().copied().chain(overtaken).collect();
        self.discard(op, &discarded);
        let Writer { session, fencing_token } = self.writer;
        let before = self.ledger.marked.get(session).copied().unwrap_or_default();
        let mut marked = Marked { fencing_token: *fencing_token, ..before };
        if mark.version > before.version {
            let above = if mutant!("boundaries-repeated") { 0 } else { before.version };
            let is_new = |boundary: &&Boundary| boundary.version > above;
            let new = mark.boundaries.iter().filter(is_new).count();
            self.place(ChunkPlacement::Boundaries { op, above }, new);
            (marked.version, marked.seq) = (mark.version, self.ledger.last_seq);
        }
        if marked == before {
            return;
        }
        // Most streams are of one session.
        match self.ledger.marked.get_mut(session) {
            Some(before) => *before = marked,
            None => drop(self.ledger.marked.insert(session.clone(), marked)),
        }
        self.change.marked = Some(session.clone());
        self.change.is_changed = true;
    }

    /// Takes those that are open off the list, and returns them.
    fn close(&mut self, attempts: &[Attempt]) -> Vec<OpenAttempt> {
        let closed: Vec<OpenAttempt> =
            self.ledger.open.extract_if(.., |open| attempts.contains(&open.attempt)).collect();
        self.change.is_changed |= !closed.is_empty();
        closed
    }

    /// Discards those that are open, and announces it.
    fn discard(&mut self, op: usize, attempts: &[Attempt]) {
        let closed = self.close(attempts);
        if closed.is_empty() {
            return;
        }
        let ended = self.ledger.last_seq;
        let attempts = closed.iter().map(|it| it.attempt).collect();
        let discarded = closed.into_iter().map(|OpenAttempt { attempt, began, .. }| Discarded {
            attempt,
            began,
            ended,
        });
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
        self.ledger.last_seq += count as u64;
        self.change.count += count as u64;
        self.change.placed.push(placed);
        self.change.is_changed = true;
    }
}

#[cfg(test)]
mod tests;
