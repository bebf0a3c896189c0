//! The state of a stream and the change that a batch makes to it, for authors of stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::contracts::stream::{
    Attempt, BatchReceipt, Chunk, ChunkKind, OpenAttempt, SessionWatermark, StreamInfo, StreamOp,
};
use crate::id::SessionId;

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
    /// A `step_committed` or `step_discarded` chunk. It is a copy of the operation's `origin` with
    /// another kind.
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

#[cfg(test)]
mod tests;
