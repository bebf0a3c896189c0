//! The stored chunks of a session as events.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use helix_agents_core::error::Result;
use helix_agents_core::stream::{ChunkKind, StoredChunk};

use super::end::{End, EndCheck};
use super::frame::{push_chunk, push_end};
use super::session_chunks::SessionChunks;
use super::source::{FRAME_BYTES, MAX_READ, Read, Source};
use crate::ownership::SessionIdentity;
use crate::service::Service;

/// The options of the events of stored chunks.
#[derive(Debug, Clone)]
pub(crate) struct ChunkOptions {
    /// The root session, whose stream is read. If it is deleted, the stream ends, and does not continue with that of
    /// another session with the same id.
    pub(crate) root: SessionIdentity,
    /// The sequence number of the first chunk.
    pub(crate) from: u64,
    /// Whether chunks of child sessions are included.
    pub(crate) has_children: bool,
}

/// Reads stored chunks, each as one event.
pub(crate) struct Chunks {
    service: Arc<Service>,
    options: ChunkOptions,
    chunks: SessionChunks,
    /// The sequence number after that of the last chunk.
    next: u64,
    end: EndCheck,
}

/// The progress of reading the chunks that are ready.
enum Progress {
    /// No more chunks are ready.
    CaughtUp,
    /// More chunks may be ready.
    More,
    /// The session was deleted.
    Deleted,
}

impl Chunks {
    /// Opens the chunks of a session.
    pub(crate) async fn open(service: Arc<Service>, options: ChunkOptions) -> Result<Self> {
        let root = options.root.clone();
        let chunks = SessionChunks::open(Arc::clone(&service), root.clone(), options.from).await?;
        let end = EndCheck::due(Arc::clone(&service), root);
        Ok(Self { next: options.from, service, options, chunks, end })
    }

    /// Adds the events of the chunks that are ready, up to the size of a frame.
    fn read_ready(&mut self, cx: &mut Context<'_>, frames: &mut BytesMut) -> Result<Progress> {
        for _ in 0..MAX_READ {
            if frames.len() >= FRAME_BYTES {
                break;
            }
            let Poll::Ready(read) = self.chunks.poll_next(cx) else {
                return Ok(Progress::CaughtUp);
            };
            let Some(stored) = read? else { return Ok(Progress::Deleted) };
            self.push(frames, &stored)?;
        }
        Ok(Progress::More)
    }

    fn push(&mut self, frames: &mut BytesMut, stored: &StoredChunk) -> Result<()> {
        self.next = stored.seq.saturating_add(1);
        let is_own = stored.chunk.session == self.options.root.session;
        if is_own && stored.chunk.kind.ends_run() {
            self.end.start(false);
        }
        let is_resync = matches!(stored.chunk.kind, ChunkKind::StreamResync);
        if self.options.has_children || is_own || is_resync {
            push_chunk(frames, &self.service.redaction().chunk(stored))?;
        }
        Ok(())
    }
}

impl Source for Chunks {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        let mut frames = BytesMut::new();
        match self.read_ready(cx, &mut frames) {
            Err(error) => return Poll::Ready(Read::broken(frames, error)),
            Ok(Progress::Deleted) => return Poll::Ready(last(frames, Ok(End::DELETED))),
            Ok(_) if !frames.is_empty() => return Poll::Ready(Read::more(frames)),
            Ok(Progress::More) => {
                // A backlog without a chunk for this client would otherwise occupy the thread.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Ok(Progress::CaughtUp) => {}
        }
        // A chunk that is being checked comes before the end.
        if self.chunks.is_checking() {
            return Poll::Pending;
        }
        self.end.poll(cx, self.next).map(|end| last(frames, end))
    }

    fn check_end(&mut self) {
        self.end.start(true);
    }
}

/// Adds the last event.
fn last(mut frames: BytesMut, end: Result<End>) -> Read {
    match end.and_then(|end| push_end(&mut frames, &end)) {
        Ok(()) => Read::last(frames),
        Err(error) => Read::broken(frames, error),
    }
}
