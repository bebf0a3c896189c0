//! Replay of stored chunks to a reader.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::body::decode;
use crate::clock::Timestamp;
use crate::contracts::stream::{Attempt, Chunk, ChunkKind, StoredChunk};
use crate::id::{RunId, SessionId};

/// Chunks that a store keeps as [`Encoded`](super::Encoded) bodies, prepared for a reader.
/// Discarded chunks are omitted, and a `stream_resync` comes first if chunks that the reader wants
/// are not kept.
#[derive(Debug)]
pub struct Replay {
    from: u64,
    /// The last chunk that the reader wanted and that is not kept.
    missing: Option<u64>,
    discarded: HashSet<Attempt>,
    chunks: VecDeque<StoredChunk>,
}

impl Replay {
    /// Creates a replay for a reader that wants the chunks starting at `from` (0 or 1 means the
    /// first chunk), of a stream that ends with `last_seq` and keeps the chunks after `trimmed`.
    /// `discarded` lists the discarded attempts of which chunks may still be stored.
    #[must_use]
    pub fn new(from: u64, last_seq: u64, trimmed: u64, discarded: HashSet<Attempt>) -> Self {
        let from = from.max(1);
        let missing = if from <= trimmed {
            Some(trimmed)
        } else {
            // The cursor comes from an earlier incarnation of the stream.
            (from > last_seq + 1).then_some(last_seq)
        };
        let from = missing.map_or(from, |seq| seq + 1);
        Self { from, missing, discarded, chunks: VecDeque::new() }
    }

    /// Creates a replay for a reader that followed an earlier stream of the session, which has been
    /// [forgotten](crate::stream::StreamManager::forget). The reader gets this stream from its first chunk.
    #[must_use]
    pub fn from_start(trimmed: u64, discarded: HashSet<Attempt>) -> Self {
        Self { from: trimmed + 1, missing: Some(trimmed), discarded, chunks: VecDeque::new() }
    }

    /// Returns the sequence number of the first chunk for the reader. Add the bodies that contain
    /// chunks from here on.
    #[must_use]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Adds the chunks of a body whose last chunk has the number `last`. Returns the number of
    /// chunks, or `None` if the body is not valid.
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

    /// Returns the chunks for the reader. A `stream_resync` copies the origin and time of the chunk
    /// that follows it, or has the time `now`.
    #[must_use]
    pub fn finish(mut self, stream: &SessionId, now: Timestamp) -> VecDeque<StoredChunk> {
        if let Some(seq) = self.missing {
            let like = self.chunks.front().map(|stored| &*stored.chunk);
            let chunk = resync(stream, seq, like, now);
            self.chunks.push_front(chunk);
        }
        self.chunks
    }
}

/// Creates the chunk that replaces chunks that are not kept, up to `seq`. It copies the origin and
/// time of `like`, or has the time `now`.
#[must_use]
pub fn resync(stream: &SessionId, seq: u64, like: Option<&Chunk>, now: Timestamp) -> StoredChunk {
    let chunk = Chunk {
        agent: like.map_or_else(|| "".into(), |chunk| Arc::clone(&chunk.agent)),
        session: stream.clone(),
        run: like.map_or_else(|| RunId::from(""), |chunk| chunk.run.clone()),
        step: like.map_or(0, |chunk| chunk.step),
        at: like.map_or(now, |chunk| chunk.at),
        kind: ChunkKind::StreamResync,
    };
    StoredChunk { seq, attempt: None, chunk: Arc::new(chunk) }
}

#[cfg(test)]
mod tests;
