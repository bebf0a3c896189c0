//! The rules of streams: what a batch changes.

use std::sync::Arc;

use super::state::{Change, ChunkPlacement, StreamState};
use crate::contracts::stream::batch::check;
use crate::contracts::stream::{
    Attempt, Batch, BatchReceipt, Boundary, Chunk, OpenAttempt, SessionWatermark, StreamOp,
    Watermark, Writer,
};
use crate::error::Result;
use crate::mutant;

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
        let mut applying =
            Applying { state: self, writer: &batch.writer, change: Change::default() };
        for (op, operation) in batch.ops.iter().enumerate() {
            match operation {
                StreamOp::Begin { effect, origin } => applying.start_attempt(op, effect, origin),
                StreamOp::Chunks { attempt, chunks } => {
                    let written = &applying.change.written;
                    let attempt = attempt.map(|named| written.attempt(named)).transpose()?;
                    applying.add(op, attempt, chunks);
                }
                StreamOp::Watermark(mark) => applying.mark(op, mark),
            }
        }
        let Applying { state, mut change, .. } = applying;
        change.written.last_seq = state.last_seq;
        Ok(change)
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

/// A stream state while a batch is applied to it.
pub(super) struct Applying<'l> {
    pub(super) state: &'l mut StreamState,
    pub(super) writer: &'l Writer,
    pub(super) change: Change,
}

impl Applying<'_> {
    fn add(&mut self, op: usize, attempt: Option<Attempt>, chunks: &[Arc<Chunk>]) {
        match attempt {
            Some(attempt) if !self.state.is_open(attempt) => {
                self.change.written.refused.push(attempt);
            }
            _ => self.place(ChunkPlacement::Chunks { op, attempt }, chunks.len()),
        }
    }

    fn mark(&mut self, op: usize, mark: &Watermark) {
        self.settle_and_announce(op, &mark.settled, mark.version);
        let is_overtaken = |open: &&OpenAttempt| {
            open.session == self.writer.session && open.fencing_token < self.writer.fencing_token
        };
        let overtaken = self.state.open.iter().filter(is_overtaken).map(|open| open.attempt);
        let discarded: Vec<_> = mark.discarded.iter().copied().chain(overtaken).collect();
        self.discard_and_announce(op, &discarded);
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

    pub(super) fn place(&mut self, placed: ChunkPlacement, count: usize) {
        if count == 0 {
            return;
        }
        self.state.last_seq += count as u64;
        self.change.count += count as u64;
        self.change.placed.push(placed);
        self.change.is_changed = true;
    }
}
