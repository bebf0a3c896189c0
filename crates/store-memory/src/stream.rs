//! One stream: its ledger, and the chunks one by one.

use std::collections::VecDeque;
use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::mutant;
use helix_agents_core::stream::{
    Answers, Attempt, Batch, BatchReceipt, Chunk, Discarded, StoredChunk, StreamInfo, StreamState,
    resync,
};

/// How it stands, and the chunks that are kept.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    ledger: StreamState,
    /// The last chunk that is not kept any more.
    trimmed: u64,
    /// The chunks after it; `None` where one was discarded.
    chunks: VecDeque<Option<StoredChunk>>,
    answers: Answers,
}

impl Stream {
    /// Writes a batch; nothing of one that names an attempt which it does not begin before.
    pub(crate) fn write(&mut self, batch: &Batch, retention: usize) -> Result<BatchReceipt> {
        if let Some(written) = self.answers.find(batch.id)
            && !mutant!("answers-forgotten")
        {
            return Ok(written.clone());
        }
        let change = self.ledger.apply(batch)?;
        for (attempt, chunk) in change.chunks(&batch.ops) {
            self.push(attempt, chunk, retention);
        }
        self.discard(&change.discarded);
        self.answers.note(batch.id, change.written.clone());
        Ok(change.written)
    }

    pub(crate) fn info(&self) -> StreamInfo {
        self.ledger.clone().info(self.trimmed)
    }

    pub(crate) fn reset(&mut self) {
        self.ledger.reset();
        self.trimmed = self.ledger.last_seq;
        self.chunks.clear();
    }

    /// The next chunk for a reader that wants `cursor`, which moves on behind it.
    pub(crate) fn next(
        &self,
        session: &SessionId,
        cursor: &mut u64,
        now: Timestamp,
    ) -> Option<StoredChunk> {
        let last = self.last_seq();
        if *cursor <= self.trimmed {
            return Some(self.begin_anew(session, cursor, now));
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

    /// Takes a reader to the first chunk that is kept.
    pub(crate) fn begin_anew(
        &self,
        session: &SessionId,
        cursor: &mut u64,
        now: Timestamp,
    ) -> StoredChunk {
        self.resync(session, self.trimmed, cursor, now)
    }

    /// Takes a reader to the chunk behind `seq`.
    fn resync(
        &self,
        session: &SessionId,
        seq: u64,
        cursor: &mut u64,
        now: Timestamp,
    ) -> StoredChunk {
        *cursor = seq + 1;
        // As if it came from the writer of the last chunk.
        let like = self.chunks.iter().rev().flatten().next();
        resync(session, seq, like.map(|it| &*it.chunk), now)
    }

    fn last_seq(&self) -> u64 {
        self.trimmed + self.chunks.len() as u64
    }

    fn push(&mut self, attempt: Option<Attempt>, chunk: Chunk, retention: usize) {
        let seq = self.last_seq() + 1;
        let chunk = Arc::new(chunk);
        self.chunks.push_back(Some(StoredChunk { seq, attempt, chunk }));
        while self.chunks.len() > retention.max(1) {
            self.chunks.pop_front();
            self.trimmed += 1;
        }
    }

    /// Forgets the chunks of these attempts.
    fn discard(&mut self, discarded: &[Discarded]) {
        let Some(began) = discarded.iter().map(|it| it.began).min() else { return };
        let since = usize::try_from(self.last_seq() - began).unwrap_or(usize::MAX);
        for slot in self.chunks.iter_mut().rev().take(since) {
            let attempt = slot.as_ref().and_then(|it| it.attempt);
            if attempt.is_some_and(|attempt| discarded.iter().any(|it| it.attempt == attempt)) {
                *slot = None;
            }
        }
    }
}
