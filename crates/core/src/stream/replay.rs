//! What a reader gets of what is kept.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::body::decode;
use super::{Attempt, Chunk, ChunkKind, StoredChunk};
use crate::clock::Timestamp;
use crate::id::{RunId, SessionId};

/// Some of the chunks that a store keeps as [`Encoded`](super::Encoded) bodies, on their way to a
/// reader: without what was discarded, and told first if what it wants is not kept.
#[derive(Debug)]
pub struct Replay {
    from: u64,
    /// The last chunk that the reader wanted and cannot have.
    missing: Option<u64>,
    discarded: HashSet<Attempt>,
    chunks: VecDeque<StoredChunk>,
}

impl Replay {
    /// For a reader that wants the chunk `from` (0 like 1: from the beginning), of a stream that ends with `last_seq` and keeps what
    /// comes after `trimmed`. `discarded` are the attempts of which chunks may still be kept.
    #[must_use]
    pub fn new(from: u64, last_seq: u64, trimmed: u64, discarded: HashSet<Attempt>) -> Self {
        let from = from.max(1);
        let missing = if from <= trimmed {
            Some(trimmed)
        } else {
            // A cursor of another life of the stream.
            (from > last_seq + 1).then_some(last_seq)
        };
        let from = missing.map_or(from, |seq| seq + 1);
        Self { from, missing, discarded, chunks: VecDeque::new() }
    }

    /// For a reader that followed an earlier stream of the session, which was
    /// [forgotten](super::StreamManager::forget) since: it gets this one from its beginning.
    #[must_use]
    pub fn anew(trimmed: u64, discarded: HashSet<Attempt>) -> Self {
        Self { from: trimmed + 1, missing: Some(trimmed), discarded, chunks: VecDeque::new() }
    }

    /// The first chunk that the reader can have: from here on bodies are to be added.
    #[must_use]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Adds the chunks of a body whose last one has this number; answers how many it has, or none if
    /// it cannot be read.
    pub fn add(&mut self, last: u64, body: &[u8]) -> Option<u64> {
        let chunks = decode(body)?;
        let count = chunks.len() as u64;
        let mut seq = last.checked_sub(count)?;
        for (attempt, chunk) in chunks {
            seq += 1;
            let is_discarded = attempt.is_some_and(|attempt| self.discarded.contains(&attempt));
            if seq >= self.from && !is_discarded {
                self.chunks.push_back(StoredChunk { seq, attempt, chunk: Arc::new(chunk) });
            }
        }
        Some(count)
    }

    /// What the reader gets. A `stream_resync` looks as if it came from whoever wrote what follows,
    /// or has that time.
    #[must_use]
    pub fn finish(mut self, stream: &SessionId, now: Timestamp) -> VecDeque<StoredChunk> {
        if let Some(seq) = self.missing {
            let like = self.chunks.front().map(|it| &*it.chunk);
            let chunk = resync(stream, seq, like, now);
            self.chunks.push_front(chunk);
        }
        self.chunks
    }
}

/// What a reader gets instead of chunks that are not kept, up to `seq`: it looks `like` another one,
/// or has that time.
#[must_use]
pub fn resync(stream: &SessionId, seq: u64, like: Option<&Chunk>, now: Timestamp) -> StoredChunk {
    let chunk = Chunk {
        agent: like.map_or_else(|| "".into(), |it| Arc::clone(&it.agent)),
        session: stream.clone(),
        run: like.map_or_else(|| RunId::from(""), |it| it.run.clone()),
        step: like.map_or(0, |it| it.step),
        at: like.map_or(now, |it| it.at),
        kind: ChunkKind::StreamResync,
    };
    StoredChunk { seq, attempt: None, chunk: Arc::new(chunk) }
}

#[cfg(test)]
mod tests;
