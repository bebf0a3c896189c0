//! One stream: its state and its individual chunks.

use std::collections::VecDeque;
use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::mutant;
use helix_agents_core::stream::{
    Attempt, Batch, BatchReceipt, Chunk, Discarded, Receipts, StoredChunk, StreamInfo, StreamState,
    resync,
};

/// The state of a stream and the chunks that are kept.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    state: StreamState,
    /// The sequence number of the last chunk that was trimmed.
    trimmed: u64,
    /// The chunks after `trimmed`. A slot is `None` if its chunk was discarded.
    chunks: VecDeque<Option<StoredChunk>>,
    receipts: Receipts,
}

impl Stream {
    /// Writes a batch. Writes nothing if the batch names an attempt that was not started before.
    pub(crate) fn write(&mut self, batch: &Batch, retention: usize) -> Result<BatchReceipt> {
        if let Some(written) = self.receipts.find(batch.id)
            && !mutant!("answers-forgotten")
        {
            return Ok(written.clone());
        }
        let change = self.state.apply(batch)?;
        change.for_each_chunk(&batch.ops, |attempt, chunk| self.push(attempt, chunk, retention));
        self.discard(&change.discarded);
        self.receipts.insert(batch.id, change.written.clone());
        Ok(change.written)
    }

    pub(crate) fn info(&self) -> StreamInfo {
        self.state.clone().info(self.trimmed)
    }

    pub(crate) fn reset(&mut self) {
        self.state.reset();
        self.trimmed = self.state.last_seq;
        self.chunks.clear();
    }

    /// Returns the chunk at `cursor`, if there is one, and advances the cursor past it.
    pub(crate) fn next(
        &self,
        session: &SessionId,
        cursor: &mut u64,
        now: Timestamp,
    ) -> Option<StoredChunk> {
        let last = self.last_seq();
        if *cursor <= self.trimmed {
            return Some(self.restart(session, cursor, now));
        }
        if *cursor > last + 1 {
            return Some(self.resync(session, last, cursor, now));
        }
        loop {
            let index = usize::try_from(*cursor - self.trimmed - 1).ok()?;
            let chunk = self.chunks.get(index)?;
            *cursor += 1;
            if chunk.is_some() {
                return chunk.clone();
            }
        }
    }

    /// Moves a reader to the first chunk that is kept.
    pub(crate) fn restart(
        &self,
        session: &SessionId,
        cursor: &mut u64,
        now: Timestamp,
    ) -> StoredChunk {
        self.resync(session, self.trimmed, cursor, now)
    }

    /// Moves a reader to the chunk after `seq`.
    fn resync(
        &self,
        session: &SessionId,
        seq: u64,
        cursor: &mut u64,
        now: Timestamp,
    ) -> StoredChunk {
        *cursor = seq + 1;
        // The resync chunk has the agent, run, step and time of the last chunk.
        let like = self.chunks.iter().rev().flatten().next();
        resync(session, seq, like.map(|last| &*last.chunk), now)
    }

    fn last_seq(&self) -> u64 {
        self.trimmed + self.chunks.len() as u64
    }

    fn push(&mut self, attempt: Option<Attempt>, chunk: Arc<Chunk>, retention: usize) {
        let seq = self.last_seq() + 1;
        self.chunks.push_back(Some(StoredChunk { seq, attempt, chunk }));
        while self.chunks.len() > retention.max(1) {
            self.chunks.pop_front();
            self.trimmed += 1;
        }
    }

    /// Removes the chunks of the given attempts.
    fn discard(&mut self, discarded: &[Discarded]) {
        let Some(start_seq) = discarded.iter().map(|attempt| attempt.start_seq).min() else {
            return;
        };
        let since = usize::try_from(self.last_seq() - start_seq).unwrap_or(usize::MAX);
        for slot in self.chunks.iter_mut().rev().take(since) {
            let attempt = slot.as_ref().and_then(|chunk| chunk.attempt);
            if attempt.is_some_and(|attempt| {
                discarded.iter().any(|discarded| discarded.attempt == attempt)
            }) {
                *slot = None;
            }
        }
    }
}
