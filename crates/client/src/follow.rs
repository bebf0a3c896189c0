//! The stream of a session, across connections.

mod connection;
mod event;
mod reader;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::StoredChunk;
use serde::Deserialize;

use self::reader::Reader;
use crate::error::Result;
use crate::transport::SharedTransport;

/// The options of a [`ChunkFollower`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowOptions {
    /// The sequence number of the first chunk to return. Default: 1, the first chunk of the stream.
    pub from: u64,
    /// Whether chunks of child sessions are included. Default: `true`.
    pub children: bool,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { from: 1, children: true }
    }
}

impl FollowOptions {
    /// Sets the sequence number of the first chunk to return.
    #[must_use]
    pub fn from(mut self, seq: u64) -> Self {
        self.from = seq;
        self
    }

    /// Leaves out the chunks of child sessions.
    #[must_use]
    pub fn without_children(mut self) -> Self {
        self.children = false;
        self
    }
}

/// The state of a session whose stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamEnd {
    /// The session waits for an answer or a child, or was interrupted. It continues when it is resumed.
    Paused,
    /// The last turn completed, or the session was aborted.
    Ended,
    /// The last run failed.
    Failed,
    /// The session was deleted.
    Deleted,
    /// A state that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The chunks of a session's tree: those already stored, then live ones, until no run is in progress.
///
/// If the connection breaks, the follower opens another one after the last chunk, with growing pauses. Every chunk is
/// returned once and in order. As in every stream, `step_discarded` takes back the chunks of an attempt that another
/// process repeats, and `stream_resync` stands for chunks that are no longer stored. Chunks of types that this version
/// does not know are skipped.
///
/// The stream ends without an error once no run is in progress. [`end`](Self::end) then returns the state of the
/// session. The stream also ends after an error that is not transient, such as 404, and if the connection could not be
/// restored within [`Limits::reconnect`](crate::Limits::reconnect).
///
/// No connection exists before the stream is polled. A slow reader slows only its own connection.
///
/// # Cancel safety
/// Dropping the future of the next chunk loses no chunk.
pub struct ChunkFollower {
    chunks: BoxStream<'static, Result<StoredChunk>>,
    end: Arc<OnceLock<StreamEnd>>,
}

impl ChunkFollower {
    pub(crate) fn new(
        transport: SharedTransport,
        session: SessionId,
        options: FollowOptions,
    ) -> Self {
        let end = Arc::new(OnceLock::new());
        let reader = Reader::new(transport, session, options, Arc::clone(&end));
        let chunks = stream::unfold(reader, |mut reader| async move {
            let next = reader.next().await?;
            Some((next, reader))
        });
        Self { chunks: chunks.fuse().boxed(), end }
    }

    /// Returns the state of the session, once the stream has ended without an error.
    #[must_use]
    pub fn end(&self) -> Option<StreamEnd> {
        self.end.get().copied()
    }
}

impl Stream for ChunkFollower {
    type Item = Result<StoredChunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_next_unpin(cx)
    }
}

impl fmt::Debug for ChunkFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkFollower").field("end", &self.end()).finish_non_exhaustive()
    }
}
