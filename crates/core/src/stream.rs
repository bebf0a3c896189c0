//! The live feed of a session, for people to watch: chunks, and the contract of what keeps them.
//!
//! A stream is no durable fact. It may be cut, replayed and trimmed; what really happened is in the
//! log. The two are tied together by marks: a mark says up to which version of the log the stream
//! has been brought into line.
//!
//! For those who write a store: [`StreamState`] has the rules, [`Encoded`] the form in which the stores of
//! this workspace keep chunks, [`Replay`] what a reader gets of it, and [`SharedStream`] how a batch is
//! written where other processes write, too. [`RetryingStreams`] asks a store again that is away.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::error::{Error, ErrorCode, Result};
use crate::id::{BatchId, SessionId};

mod batch;
mod body;
mod cache;
mod chunk;
mod replay;
mod retrying;
mod shared;
mod state;

pub use batch::{AttemptRef, Batch, BatchReceipt, Boundary, StreamOp, Watermark, Writer};
pub use body::{Encoded, decode_open, encode_open};
pub use cache::{Answers, Asked, CacheEntry, Place, StreamCache};
pub use chunk::{Attempt, Chunk, ChunkKind, Effect, StoredChunk};
pub use replay::{Replay, resync};
pub use retrying::RetryingStreams;
pub use shared::{CachedStream, Found, SharedStream, write_shared};
pub use state::{Change, ChunkPlacement, Discarded, StreamState};

/// An attempt that was neither settled nor discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    /// Its number.
    pub attempt: Attempt,
    /// The session that tries.
    pub session: SessionId,
    /// What it tries.
    pub effect: Effect,
    /// The last chunk before it began; 0 if there was none.
    pub began: u64,
    /// The fencing token of the [writer](Writer) that began it.
    pub fencing_token: u64,
}

/// How far a session's log is known to its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marked {
    /// The version of its last mark.
    pub version: u64,
    /// The last chunk when that was written, what it announced and its boundaries included.
    pub seq: u64,
    /// The greatest fencing token of the [writers](Writer) of its marks.
    pub fencing_token: u64,
}

/// How a stream stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamInfo {
    /// The first chunk that is still kept; 0 if there is none.
    pub first_seq: u64,
    /// The last chunk; 0 if there is none.
    pub last_seq: u64,
    /// Each session's last mark: its own, and those of children that show in it.
    pub marked: BTreeMap<SessionId, Marked>,
    /// Attempts that were neither settled nor discarded, in the order in which they began.
    pub open: Vec<OpenAttempt>,
}

impl StreamInfo {
    /// The version of this session's last mark; 0 if there is none.
    #[must_use]
    pub fn marked_by(&self, session: &SessionId) -> u64 {
        self.marked.get(session).map_or(0, |marked| marked.version)
    }
}

/// Chunks as they come; ends only with an error or when it is dropped.
pub type ChunkStream = BoxStream<'static, Result<StoredChunk>>;

/// What keeps streams.
///
/// # Contract
///
/// `stream_suite!` of `helix-agents-testkit` is the executable form of this section.
///
/// - Sequence numbers start at 1 and have no gaps as written. They become visible in order: who
///   saw n never later finds something below n.
/// - What one [`write`](Self::write) is given is written in order and together: all of it, or, if
///   it fails, nothing.
/// - A batch that failed with an error of kind `unavailable`, or whose future was dropped, may have
///   been written. It may be written again under its id through the same handle: then it is written
///   once, and answered as the first time, whatever else was written meanwhile. A handle knows at least
///   the last [64](Answers::KEPT) batches of a stream again, of at least a thousand streams and of all
///   with a batch that was not answered. It forgets them with the process: no other one repeats a
///   batch.
/// - Sessions of one tree share the root's stream. Effects and marks of one are nothing to another:
///   whose they are says the session of their `origin`.
/// - [`Begin`](StreamOp::Begin) discards an earlier open attempt at the same effect, announces
///   that by a `step_discarded` chunk, and gets a higher number.
/// - Chunks of an attempt that was settled, discarded or never begun are left out and the attempt
///   is named as [refused](BatchReceipt::refused). The rest of the batch is written.
/// - A batch is of one [`Writer`]. It is left out whole, and answered as
///   [superseded](BatchReceipt::is_superseded), if its session has a mark or an open attempt of a writer with a
///   greater fencing token. A process that stood still until another one had taken over its session
///   cannot write into its successor's stream.
/// - A mark also discards the open attempts of its session that writers with a lower fencing token began and
///   that it does not settle. Workers of the same run have the same token, and so do not affect each other.
/// - Chunks of a settled attempt are never discarded. Chunks without an attempt (boundaries)
///   survive every discard.
/// - [`read`](Self::read) first catches up and then follows, without gap or duplicate. It leaves
///   out chunks of attempts that are discarded by the time they are read; a reader that already
///   saw some of them gets the announcement.
/// - A reader that asks for chunks which were trimmed gets one `stream_resync` chunk, whose `seq`
///   is the last trimmed one, and then what is kept. So does one whose cursor lies beyond the next
///   chunk: it is of another life of the stream, and the `seq` is that of the last chunk.
/// - A stream that was never written to reads as empty and then follows.
/// - A stream that was [forgotten](Self::forget) is like one that was never written to, with its chunks,
///   marks, attempts and numbers. A reader that has seen some of it gets one `stream_resync` whose `seq`
///   is 0, and then the next stream of that session from its beginning.
/// - A slow reader never slows a writer: a reader that falls behind catches up from what is kept.
/// - Marks never go back: one whose version is not above the last is taken for its attempts only.
///   Boundaries of versions up to the last mark are there already and are left out one by one, so
///   that two who bring a stream into line at once, each as far as it sees, show nothing twice.
///
/// # Durability
///
/// None promised beyond the process. A store may keep streams as durably as it likes.
#[async_trait]
pub trait StreamManager: fmt::Debug + Send + Sync + 'static {
    /// Writes a batch. One round trip, whatever is in it.
    ///
    /// # Errors
    /// [`ErrorCode::InputInvalid`] if it names an attempt that it does not begin before, or begins or marks
    /// for another session than its writer's, and those of the backend. One of kind `unavailable` leaves open
    /// whether it was written.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the batch was written; never a part of it.
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt>;

    /// Chunks from `from` on (1 or 0: from the beginning), first those that are kept, then live.
    ///
    /// # Errors
    /// Those of the backend.
    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream>;

    /// How the stream stands.
    ///
    /// # Errors
    /// Those of the backend.
    async fn info(&self, stream: &SessionId) -> Result<StreamInfo>;

    /// Forgets the chunks, marks and open attempts of the stream. Sequence numbers continue from where
    /// they were, so that an old cursor never points into new chunks; a reader with one gets
    /// `stream_resync`.
    ///
    /// # Errors
    /// Those of the backend.
    async fn reset(&self, stream: &SessionId) -> Result<()>;

    /// Forgets the stream and its numbers, because its session is deleted. Nothing of it is kept. A
    /// later session of that id has a stream that begins anew, with chunk 1.
    ///
    /// [`delete_session`](crate::session::delete_session) calls it where sessions and streams are not
    /// in one store.
    ///
    /// # Errors
    /// Those of the backend.
    async fn forget(&self, stream: &SessionId) -> Result<()>;
}

/// Batches of one operation [without a run](Writer::without_run), for tests and tools. A run writes batches
/// that name it.
impl dyn StreamManager + '_ {
    /// Begins a try at an effect of the origin's session.
    ///
    /// # Errors
    /// [`ErrorCode::Superseded`] if a run of that session has taken over the stream, and as
    /// [`write`](StreamManager::write).
    pub async fn begin(
        &self,
        id: BatchId,
        stream: &SessionId,
        effect: &Effect,
        origin: Chunk,
    ) -> Result<Attempt> {
        let (writer, effect) = (Writer::without_run(&origin.session), effect.clone());
        let batch = Batch::new(id, writer, [StreamOp::Begin { effect, origin }]);
        self.write_unless_superseded(stream, batch).await?.attempt(AttemptRef::Started(0))
    }

    /// Writes chunks of the stream's own session; answers the sequence number of the last one.
    ///
    /// # Errors
    /// [`ErrorCode::AttemptDiscarded`] if the attempt is not open, and as `begin`.
    pub async fn append(
        &self,
        id: BatchId,
        stream: &SessionId,
        attempt: Option<Attempt>,
        chunks: Vec<Chunk>,
    ) -> Result<u64> {
        let op = StreamOp::Chunks { attempt: attempt.map(AttemptRef::Existing), chunks };
        let batch = Batch::new(id, Writer::without_run(stream), [op]);
        let written = self.write_unless_superseded(stream, batch).await?;
        match written.refused.first() {
            None => Ok(written.last_seq),
            Some(attempt) => {
                let message = "the attempt was settled, discarded or never begun";
                Err(Error::new(ErrorCode::AttemptDiscarded, message)
                    .with_context("session", stream)
                    .with_context("attempt", attempt.0))
            }
        }
    }

    /// Brings the stream into line with the log of the origin's session.
    ///
    /// # Errors
    /// As `begin`.
    pub async fn mark(&self, id: BatchId, stream: &SessionId, mark: Watermark) -> Result<()> {
        let writer = Writer::without_run(&mark.origin.session);
        let batch = Batch::new(id, writer, [StreamOp::Watermark(Box::new(mark))]);
        self.write_unless_superseded(stream, batch).await.map(drop)
    }

    async fn write_unless_superseded(
        &self,
        stream: &SessionId,
        batch: Batch,
    ) -> Result<BatchReceipt> {
        let Writer { session, fencing_token } = batch.writer.clone();
        let written = self.write(stream, batch).await?;
        if written.is_superseded {
            let message = "a later run of the session has taken over the stream";
            return Err(Error::new(ErrorCode::Superseded, message)
                .with_context("session", session)
                .with_context("fencing_token", fencing_token));
        }
        Ok(written)
    }
}
