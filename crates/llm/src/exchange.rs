//! One request and its response, with time limits and a cancellation token.
//!
//! Everything runs on the caller's task. Dropping an exchange closes its connection.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use helix_agents_core::error::ErrorCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::failure::{Failure, Subject};
use crate::http::Timeouts;
use crate::retry::cancelled;

/// The maximum number of bytes that are read from an error body.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The time limit for the body of an error. What has arrived by then is used.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// How long the end of a reply may lag behind its last event. After that, the connection is closed
/// and not reused for the next call.
const DRAIN: Duration = Duration::from_millis(100);

/// The response to a request, while it is received.
pub(crate) struct Exchange<'a> {
    subject: Subject<'a>,
    response: Response,
    cancelled: Pin<Box<WaitForCancellationFuture<'a>>>,
    /// A timer that fires at or before the deadline. It is reset only when it fires, not for every
    /// read.
    alarm: Pin<Box<Sleep>>,
    deadline: Instant,
    limits: Timeouts,
    limit: Duration,
    most_bytes: usize,
    left: usize,
}

/// The kind of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Events,
    /// Binary frames with events.
    Frames,
    Json,
    /// A web page, which is not a provider's response.
    Page,
}

impl<'a> Exchange<'a> {
    /// Waits for the head of a response. `sent` is the pending response: a request would make the
    /// future several times larger.
    pub(crate) async fn begin(
        sent: impl Future<Output = reqwest::Result<Response>>,
        subject: Subject<'a>,
        limits: Timeouts,
        most_bytes: usize,
        cancel: &'a CancellationToken,
    ) -> Result<Self, Failure> {
        let mut cancelled_by_caller = Box::pin(cancel.cancelled());
        let deadline = Instant::now() + limits.first_byte;
        let mut alarm = Box::pin(sleep_until(deadline));
        let response = tokio::select! {
            biased;
            () = &mut cancelled_by_caller => return Err(cancelled().into()),
            response = sent => response.map_err(|error| subject.transport(error))?,
            () = &mut alarm => return Err(subject.timeout("nothing", limits.first_byte)),
        };
        Ok(Self {
            subject,
            response,
            cancelled: cancelled_by_caller,
            alarm,
            deadline,
            limits,
            limit: limits.first_byte,
            most_bytes,
            left: most_bytes,
        })
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns the kind of the body by its content type, or `asked` if the type is missing or
    /// unknown.
    pub(crate) fn body_kind(&self, asked: BodyKind) -> BodyKind {
        let header = self.headers().get(CONTENT_TYPE);
        let text = header.map(HeaderValue::as_bytes).unwrap_or_default();
        let kinds = [
            ("text/event-stream", BodyKind::Events),
            ("application/vnd.amazon.eventstream", BodyKind::Frames),
            ("application/json", BodyKind::Json),
            ("text/html", BodyKind::Page),
        ];
        let kind = kinds.into_iter().find(|(name, _)| is_content_type(text, name.as_bytes()));
        kind.map_or(asked, |(_, kind)| kind)
    }

    /// Returns the next piece of the body, or `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            tokio::select! {
                biased;
                () = &mut self.cancelled => return Err(cancelled().into()),
                piece = self.response.chunk() => {
                    let piece = piece.map_err(|error| self.subject.cut(Some(error)))?;
                    return self.received(piece);
                }
                () = &mut self.alarm => {
                    if Instant::now() >= self.deadline {
                        return Err(self.subject.timeout("nothing more", self.limit));
                    }
                    self.alarm.as_mut().reset(self.deadline);
                }
            }
        }
    }

    fn received(&mut self, piece: Option<Bytes>) -> Result<Option<Bytes>, Failure> {
        let Some(piece) = piece else {
            return Ok(None);
        };
        self.left = self
            .left
            .checked_sub(piece.len())
            .ok_or_else(|| self.subject.too_large(self.most_bytes))?;
        self.limit = self.limits.read;
        self.deadline = Instant::now() + self.limit;
        if self.alarm.deadline() > self.deadline {
            self.alarm.as_mut().reset(self.deadline);
        }
        Ok(Some(piece))
    }

    /// Reduces the wait for data that may still arrive but is not needed.
    pub(crate) fn hurry(&mut self, limit: Duration) {
        self.limits.read = limit.min(self.limits.read);
        self.limit = self.limits.read;
        self.deadline = Instant::now() + self.limit;
        self.alarm.as_mut().reset(self.deadline);
    }

    /// Reads the whole body.
    pub(crate) async fn body(&mut self) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(piece) = self.next().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Reads as much as possible of an error's body. Returns an error only if the call is
    /// cancelled.
    pub(crate) async fn error_body(&mut self) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        self.hurry(ERROR_BODY_TIME);
        // The server may send each piece in time, but many of them.
        let read = async {
            while body.len() < MAX_ERROR_BYTES {
                match self.next().await {
                    Ok(Some(piece)) => body.extend_from_slice(&piece),
                    Ok(None) => break,
                    Err(failure) if failure.error.code() == ErrorCode::Cancelled => {
                        return Err(failure);
                    }
                    Err(_) => break,
                }
            }
            Ok(())
        };
        timeout(ERROR_BODY_TIME, read).await.unwrap_or(Ok(()))?;
        body.truncate(MAX_ERROR_BYTES);
        Ok(body)
    }

    /// Reads the unneeded rest of a body, so that the connection can be reused for the next call.
    pub(crate) async fn drain(&mut self) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        // If the server keeps sending, the connection is closed.
        let _in_time = timeout(DRAIN, rest).await.is_ok();
        // The connection returns to the pool on its own task, which has been woken by now. Without
        // yielding to it, an immediate second call would open another connection.
        tokio::task::yield_now().await;
    }
}

/// Returns `true` if a header has this content type, possibly with parameters.
fn is_content_type(header: &[u8], name: &[u8]) -> bool {
    let Some((start, rest)) = header.trim_ascii_start().split_at_checked(name.len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(name) && matches!(rest.trim_ascii_start(), [] | [b';', ..])
}

#[cfg(test)]
mod tests;
