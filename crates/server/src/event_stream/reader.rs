//! The part of an event stream that does not depend on its content: its opening, pauses, failures and end.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use helix_agents_core::error::{Error, ErrorCode, Result};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::frame::{KEEP_ALIVE, OPEN};
use super::source::{Next, Read, Source};
use crate::limits::Permit;
use crate::service::Service;

/// The time without a frame after which a comment is sent.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Reads a source for one client.
pub(crate) struct Reader {
    source: Box<dyn Source>,
    stall_timeout: Duration,
    is_open: bool,
    /// The error to report after the frames that were read before it.
    failure: Option<Error>,
    /// Whether the connection had the opportunity to send what was read before the failure.
    has_flushed: bool,
    has_ended: bool,
    keep_alive: Pin<Box<Sleep>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    _permit: Permit,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

impl Reader {
    /// Creates a reader. It holds the permit until the stream ends.
    pub(crate) fn new(
        service: &Arc<Service>,
        source: impl Source + 'static,
        permit: Permit,
    ) -> Self {
        Self {
            source: Box::new(source),
            stall_timeout: service.limits.stall_timeout,
            is_open: false,
            failure: None,
            has_flushed: false,
            has_ended: false,
            keep_alive: Box::pin(tokio::time::sleep(KEEP_ALIVE_INTERVAL)),
            closing: Box::pin(service.closing.clone().cancelled_owned()),
            _permit: permit,
        }
    }

    /// Returns the time for which the client may read nothing.
    pub(super) fn stall_timeout(&self) -> Duration {
        self.stall_timeout
    }

    /// Returns the next frames, or `None` after the last ones.
    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        if self.closing.poll_unpin(cx).is_ready() {
            let message = "the server is shutting down; continue the stream at another instance";
            return Poll::Ready(Some(Err(Error::new(ErrorCode::ServerStopping, message))));
        }
        if !self.is_open {
            self.is_open = true;
            return Poll::Ready(Some(Ok(Bytes::from_static(OPEN))));
        }
        if self.failure.is_some() {
            return self.poll_failure(cx);
        }
        match self.source.poll_read(cx) {
            Poll::Ready(read) => self.take(read, cx),
            Poll::Pending => self.poll_keep_alive(cx),
        }
    }

    fn take(&mut self, read: Read, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let Read { frames, next } = read;
        match next {
            Next::More => {}
            Next::End => self.has_ended = true,
            Next::Break(error) => self.failure = Some(error),
        }
        self.restart_keep_alive();
        if frames.is_empty() { self.poll_frame(cx) } else { Poll::Ready(Some(Ok(frames))) }
    }

    /// Reports the failure once the connection could send the frames before it.
    fn poll_failure(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        if !self.has_flushed {
            // Without a pause, the events before the failure would not be sent.
            self.has_flushed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let failure = self.failure.take();
        if let Some(error) = &failure {
            tracing::warn!(%error, "an event stream broke off");
        }
        Poll::Ready(failure.map(Err))
    }

    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        ready!(self.keep_alive.poll_unpin(cx));
        self.restart_keep_alive();
        self.source.check_end();
        Poll::Ready(Some(Ok(Bytes::from_static(KEEP_ALIVE))))
    }

    fn restart_keep_alive(&mut self) {
        self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
    }
}
