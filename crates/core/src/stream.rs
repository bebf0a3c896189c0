//! Streams: the live chunks of a session, for users to watch, and the contract of stream stores.
//!
//! A stream is not durable. It may be cut, replayed and trimmed; the log holds the durable facts.
//! Watermarks connect the two: a watermark is the version of the log up to which the stream is
//! consistent with it.
//!
//! For authors of stores: [`StreamState`] implements the stream rules, [`Encoded`] is the format in
//! which the stores of this workspace keep chunks, [`Replay`] produces the chunks that a reader
//! gets, and [`SharedStream`] writes batches to a stream that other processes also write.
//! [`RetryingStreams`] retries operations while a store is unavailable.

pub use crate::contracts::stream::{
    Attempt, AttemptRef, Batch, BatchReceipt, Boundary, Chunk, ChunkKind, ChunkStream, Effect,
    OpenAttempt, RetryingStreams, SessionWatermark, StoredChunk, StreamInfo, StreamManager,
    StreamManagerExt, StreamOp, Watermark, Writer,
};
pub use crate::journal::{
    BatchPosition, CacheEntry, CachedStream, PendingBatch, Receipts, SharedStream, StreamCache,
    StreamLookup, write_shared,
};
pub use crate::machine::stream::{
    Change, ChunkPlacement, Discarded, Encoded, Replay, StreamState, decode_open, encode_open,
    resync,
};
