//! The content of an event stream.

use std::task::{Context, Poll};

use bytes::Bytes;
use helix_agents_core::error::Error;

/// Produces the frames of an event stream: those of stored chunks, or those of a front end's protocol.
pub(crate) trait Source: Send {
    /// Returns the frames that are ready, at most about [`FRAME_BYTES`] of them.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read>;

    /// Checks whether more will follow, because nothing was read for a while. The next call of
    /// [`poll_read`](Self::poll_read) returns the outcome.
    fn check_end(&mut self);
}

/// The size at which frames are sent although more are ready.
pub(super) const FRAME_BYTES: usize = 16 * 1024;

/// The number of chunks that are read before other tasks of the thread get their turn.
pub(super) const MAX_READ: usize = 256;

/// Frames, and how the stream continues after them.
#[derive(Debug)]
pub(crate) struct Read {
    /// The frames; empty if the stream ends without any.
    pub(crate) frames: Bytes,
    pub(crate) next: Next,
}

/// The continuation of an event stream.
#[derive(Debug)]
pub(crate) enum Next {
    /// More frames follow.
    More,
    /// The stream is complete.
    End,
    /// The connection is broken, so that the client does not take the stream for complete.
    Break(Error),
}

impl Read {
    /// Returns frames after which more follow.
    pub(super) fn more(frames: impl Into<Bytes>) -> Self {
        Self { frames: frames.into(), next: Next::More }
    }

    /// Returns the last frames.
    pub(super) fn last(frames: impl Into<Bytes>) -> Self {
        Self { frames: frames.into(), next: Next::End }
    }

    /// Returns the frames before an error.
    pub(super) fn broken(frames: impl Into<Bytes>, error: Error) -> Self {
        Self { frames: frames.into(), next: Next::Break(error) }
    }
}
