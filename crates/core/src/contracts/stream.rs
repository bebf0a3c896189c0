//! Streams: the live chunks of a session, and the contract of stream stores.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::clock::Timestamp;
use crate::contracts::store::WriteQueue;
use crate::error::{Error, ErrorCode, Result};
use crate::id::{BatchId, SessionId};

pub(crate) mod batch;
mod chunk;
mod retrying;

pub use batch::{AttemptRef, Batch, BatchReceipt, Boundary, StreamOp, Watermark, Writer};
pub use chunk::{Attempt, Chunk, ChunkKind, Effect, StoredChunk};
pub use retrying::RetryingStreams;

/// An attempt that was neither settled nor discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    /// The number of the attempt.
    pub attempt: Attempt,
    /// The session that makes the attempt.
    pub session: SessionId,
    /// The effect that is attempted.
    pub effect: Effect,
    /// The sequence number of the last chunk before the attempt started; 0 if there was none.
    pub start_seq: u64,
    /// The fencing token of the [writer](Writer) that started the attempt.
    pub fencing_token: u64,
}

/// The last watermark of a session in a stream that raised the log version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionWatermark {
    /// The log version of the watermark.
    pub version: u64,
    /// The sequence number of the last chunk when the watermark was written, including its
    /// announcements and boundaries.
    pub seq: u64,
    /// The greatest fencing token of the [writers](Writer) of all watermarks of the session.
    pub fencing_token: u64,
}

impl SessionWatermark {
    /// Returns `true` if the watermark is one of the session that was created at this time, and
    /// not of a deleted session with the same id. Fencing tokens are at least as great as the
    /// creation time in milliseconds.
    #[must_use]
    pub fn is_from_session(&self, created_at: Timestamp) -> bool {
        self.fencing_token >= u64::try_from(created_at.0).unwrap_or_default()
    }
}

/// The current state of a stream, as readers and drivers see it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamInfo {
    /// The sequence number of the first chunk that is still kept; 0 if there is none.
    pub first_seq: u64,
    /// The sequence number of the last chunk; 0 if there is none.
    pub last_seq: u64,
    /// The last watermark of each session that writes to the stream: its own session and child
    /// sessions.
    pub marked: BTreeMap<SessionId, SessionWatermark>,
    /// The attempts that were neither settled nor discarded, in the order in which they started.
    pub open: Vec<OpenAttempt>,
}

impl StreamInfo {
    /// Returns `true` if the stream does not exist: nothing was written to it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the log version of the last watermark of the session that was created at this time;
    /// 0 if there is none. A watermark of a deleted session with the same id does not count.
    #[must_use]
    pub fn watermark_version(&self, session: &SessionId, created_at: Timestamp) -> u64 {
        let marked = self.marked.get(session).filter(|marked| marked.is_from_session(created_at));
        marked.map_or(0, |marked| marked.version)
    }
}

/// Chunks in order. A stream of [`StreamManager::read`] ends only after an error. A stream of
/// [`RunHandle::stream`](crate::executor::RunHandle::stream) also ends with the run.
pub type ChunkStream = BoxStream<'static, Result<StoredChunk>>;

/// A store of streams.
///
/// # Contract
///
/// `stream_suite!` of `helix-agents-conformance` is the executable form of this section.
///
/// - Chunks are numbered from 1 without gaps. The numbers that a reader gets increase until a `stream_resync` chunk;
///   numbers of discarded chunks are missing.
/// - The operations of one [`write`](Self::write) are written atomically and in order: all of them,
///   or none if the write fails.
/// - A batch that failed with an error of kind `unavailable`, or whose future was dropped, may have been written. It
///   can be retried with the same id through the same handle. It is then written only once, and the retry returns the
///   first receipt, even if other batches were written in the meantime. A handle remembers at least the last
///   [64](crate::stream::Receipts::KEPT) batches of each of the thousand streams that it wrote last, and of every
///   stream with a batch in flight. This memory ends with the process, because no other process repeats a batch.
/// - The sessions of one tree share the root session's stream. Attempts and watermarks of different sessions are
///   independent. `Begin` and `Watermark` belong to the session of their `origin`, which is that of the writer. Chunks
///   belong to the session of their attempt.
/// - [`Begin`](StreamOp::Begin) discards an earlier open attempt at the same effect and announces that with a
///   `step_discarded` chunk. The new attempt gets a higher number.
/// - Chunks of an attempt that was settled, discarded or never started are dropped, and the receipt
///   lists the attempt as [refused](BatchReceipt::refused). The rest of the batch is written.
/// - A batch has one [`Writer`]. The whole batch is dropped, and the receipt is
///   [superseded](BatchReceipt::is_superseded), if the writer's session has a watermark or an open attempt of a writer
///   with a greater fencing token. A process that stalled during a takeover of its session therefore cannot write any
///   more once its successor has started an attempt or written a watermark.
/// - A watermark also discards each open attempt of its session that it does not settle and that was started with a
///   lower fencing token. Workers of the same run have the same token, so they do not affect each other.
/// - Chunks of a settled attempt and chunks without an attempt are never discarded.
/// - [`read`](Self::read) first catches up and then follows, without gaps or duplicates. It omits chunks of attempts
///   that are discarded by the time they are read. Every reader gets the announcement, so a reader that has already
///   seen some of the chunks can remove them.
/// - A reader that asks for trimmed chunks gets one `stream_resync` chunk, whose `seq` is the last
///   trimmed sequence number, and then the chunks that are kept. A reader whose cursor is beyond
///   the next chunk comes from an earlier incarnation of the stream. It also gets a
///   `stream_resync`, whose `seq` is that of the last chunk.
/// - A stream that was never written to reads as empty and then follows.
/// - A stream that was [forgotten](Self::forget) is like one that was never written to: its chunks,
///   watermarks, attempts and numbers are gone. A reader that has seen some of it gets one
///   `stream_resync` with `seq` 0, and then the next stream of that session from its first chunk.
/// - A slow reader never slows down a writer: a reader that falls behind catches up from the kept
///   chunks.
/// - Watermarks never go back. A watermark whose version is not above the last one writes no boundaries. It still
///   settles and discards its attempts, and can raise the fencing token. A [boundary](Boundary) is a chunk with the log
///   version that it shows. Boundaries of versions up to the last watermark exist already and are skipped; newer ones
///   are written. Two processes can therefore bring a stream into line with the log at the same time, even if one has
///   read less of the log, without showing a chunk twice.
///
/// # Durability
///
/// No durability is guaranteed beyond the process. A store may keep streams as durably as it likes.
///
/// # Examples
///
/// ```no_run
/// use futures_util::StreamExt as _;
/// use helix_agents_core::stream::StreamManager;
///
/// # use helix_agents_core::error::Result;
/// # async fn example(streams: &dyn StreamManager) -> Result<()> {
/// let mut chunks = streams.read(&"ticket-7".into(), 1).await?;
/// while let Some(stored) = chunks.next().await {
///     println!("{:?}", stored?.chunk.kind);
/// }
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait StreamManager: fmt::Debug + Send + Sync + 'static {
    /// Writes a batch in one round trip, regardless of its size.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if an [`AttemptRef::Started`] does not refer to an earlier `Begin` of the
    /// batch, or if a `Begin` or `Watermark` of the batch belongs to a session other than its writer's, and the errors
    /// of the backend. After an error of kind `unavailable`, the batch may have been written.
    ///
    /// # Cancel safety
    /// If the future is dropped, the batch may or may not have been written, but never only a part
    /// of it.
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt>;

    /// Returns the identity of the queue that executes batches in the order in which their futures are first polled, or
    /// `None` if the order is not guaranteed.
    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    /// Reads the chunks starting at `from` (0 or 1 means the first chunk): first the kept chunks,
    /// then live ones.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream>;

    /// Returns the current state of the stream.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn info(&self, stream: &SessionId) -> Result<StreamInfo>;

    /// Deletes the chunks, watermarks and open attempts of the stream. Sequence numbers continue, so an old cursor
    /// never points to a new chunk. A reader that has not read all deleted chunks gets `stream_resync`; any other
    /// continues.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn reset(&self, stream: &SessionId) -> Result<()>;

    /// Deletes the stream and its numbers if its [`info`](Self::info) still equals `seen`. Its session must have been
    /// deleted before. Nothing of the stream is kept. A later session with the same id has a new stream, which starts
    /// with chunk 1.
    ///
    /// Returns `true` if the stream does not exist afterwards, and `false` if it has changed since
    /// and was kept. The comparison and the deletion are atomic: a session that was created in the
    /// meantime and has written to its stream does not lose any of it.
    /// [`clear_stream`](crate::session::clear_stream) uses this method.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool>;
}

/// Single-operation batches [without a run](Writer::without_run), for tests and maintenance programs. A run writes
/// batches that name the run.
#[async_trait]
pub trait StreamManagerExt: StreamManager {
    /// Starts an attempt at an effect of the origin's session.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Superseded`] if a run of that session has taken over the stream, and
    /// the errors of [`write`](StreamManager::write).
    async fn begin(
        &self,
        id: BatchId,
        stream: &SessionId,
        effect: &Effect,
        origin: Chunk,
    ) -> Result<Attempt> {
        let (writer, effect) = (Writer::without_run(&origin.session), effect.clone());
        let origin = Arc::new(origin);
        let batch = Batch::new(id, writer, [StreamOp::Begin { effect, origin }]);
        write_unless_superseded(self, stream, batch).await?.attempt(AttemptRef::Started(0))
    }

    /// Writes chunks of the stream's own session and returns the sequence number of the last chunk.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AttemptDiscarded`] if the attempt is not open, and the errors of
    /// `begin`.
    async fn append_chunks(
        &self,
        id: BatchId,
        stream: &SessionId,
        attempt: Option<Attempt>,
        chunks: Vec<Chunk>,
    ) -> Result<u64> {
        let chunks = chunks.into_iter().map(Arc::new).collect();
        let op = StreamOp::Chunks { attempt: attempt.map(AttemptRef::Existing), chunks };
        let batch = Batch::new(id, Writer::without_run(stream), [op]);
        let written = write_unless_superseded(self, stream, batch).await?;
        match written.refused.first() {
            None => Ok(written.last_seq),
            Some(attempt) => {
                let message = "the attempt was committed, discarded or never started";
                Err(Error::new(ErrorCode::AttemptDiscarded, message)
                    .with_context("session", stream)
                    .with_context("attempt", attempt.0))
            }
        }
    }

    /// Writes a watermark, which brings the stream into line with the log of the origin's session.
    ///
    /// # Errors
    /// Returns the errors of `begin`.
    async fn mark(&self, id: BatchId, stream: &SessionId, mark: Watermark) -> Result<()> {
        let writer = Writer::without_run(&mark.origin.session);
        let batch = Batch::new(id, writer, [StreamOp::Watermark(Box::new(mark))]);
        write_unless_superseded(self, stream, batch).await.map(drop)
    }
}

#[async_trait]
impl<T: StreamManager + ?Sized> StreamManagerExt for T {}

async fn write_unless_superseded(
    streams: &(impl StreamManager + ?Sized),
    stream: &SessionId,
    batch: Batch,
) -> Result<BatchReceipt> {
    let Writer { session, fencing_token, .. } = batch.writer.clone();
    let written = streams.write(stream, batch).await?;
    if written.is_superseded {
        let message = "a later run of the session has taken over the stream";
        return Err(Error::new(ErrorCode::Superseded, message)
            .with_context("session", session)
            .with_context("fencing_token", fencing_token));
    }
    Ok(written)
}
