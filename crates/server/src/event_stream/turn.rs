//! A turn of a session as the events of a front end's protocol.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::stream::StoredChunk;
use tokio::time::Sleep;

use super::end::EndCheck;
use super::session_chunks::SessionChunks;
use super::source::{FRAME_BYTES, MAX_READ, Read, Source};
use crate::ownership::SessionIdentity;
use crate::service::Service;
use crate::view::View;

/// A translator of one response, from chunks to frames.
pub(crate) trait Translator: Send {
    /// Starts the response with the recorded part of the turn and the chunks in progress.
    fn begin(&mut self, view: &View, frames: &mut Vec<u8>) -> Result<Progress>;

    /// Adds a chunk.
    fn push(&mut self, stored: &StoredChunk, frames: &mut Vec<u8>) -> Result<Progress>;

    /// Continues the response after [`Progress::Reload`].
    fn reload(&mut self, view: &View, frames: &mut Vec<u8>) -> Result<Progress>;

    /// Returns the time after which frames that are held back are added with [`flush`](Self::flush), if there are any.
    fn delay(&self) -> Option<Duration> {
        None
    }

    /// Adds the frames that are held back.
    fn flush(&mut self, _frames: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    /// Returns how the response continues if the run has ended and the stream did not show it.
    fn missed_end(&self) -> Progress;
}

/// The state of a response after some of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More frames follow.
    Open,
    /// The response is complete.
    Done,
    /// The client has to resume, because the response lacks something.
    Broken,
    /// The view has to be read again, because the client has to take something back.
    Reload,
}

/// Reads one turn for one client.
pub(crate) struct Turn {
    service: Arc<Service>,
    root: SessionIdentity,
    translator: Box<dyn Translator>,
    /// The events that are written but not sent to the client yet.
    frames: Vec<u8>,
    progress: Progress,
    chunks: SessionChunks,
    /// The sequence number after that of the last chunk.
    next: u64,
    /// The time at which frames that are held back are added.
    flush: Option<Pin<Box<Sleep>>>,
    reload: Option<BoxFuture<'static, Result<(View, SessionChunks)>>>,
    end: EndCheck,
}

impl Turn {
    /// Starts the response with the view, whose page may be older than the stream.
    pub(crate) async fn open(
        service: Arc<Service>,
        root: SessionIdentity,
        view: &View,
        translator: impl Translator + 'static,
    ) -> Result<Self> {
        let mut translator = Box::new(translator);
        let mut frames = Vec::new();
        let progress = translator.begin(view, &mut frames)?;
        let next = view.page.next_seq;
        let chunks = SessionChunks::open(Arc::clone(&service), root.clone(), next).await?;
        let end = EndCheck::idle(Arc::clone(&service), root.clone());
        let (flush, reload) = (None, None);
        Ok(Self { service, root, translator, frames, progress, chunks, next, flush, reload, end })
    }

    /// Adds the chunks that are ready. Returns `true` if more may be ready.
    fn read_ready(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        for _ in 0..MAX_READ {
            if self.progress != Progress::Open || self.frames.len() >= FRAME_BYTES {
                return Ok(false);
            }
            let Poll::Ready(read) = self.chunks.poll_next(cx) else { return Ok(false) };
            let deleted = || Error::new(ErrorCode::SessionNotFound, "the session was deleted");
            let stored = read?.ok_or_else(deleted)?;
            self.next = stored.seq.saturating_add(1);
            self.flush = None;
            self.progress = self.translator.push(&stored, &mut self.frames)?;
        }
        Ok(true)
    }

    /// Reads the view again if the translator asks for it. Returns pending while it is read.
    fn poll_reload(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.progress != Progress::Reload {
            return Poll::Ready(Ok(()));
        }
        let (service, root) = (&self.service, &self.root);
        let reload = self
            .reload
            .get_or_insert_with(|| read_again(Arc::clone(service), root.clone()).boxed());
        let Poll::Ready(read) = reload.poll_unpin(cx) else { return Poll::Pending };
        self.reload = None;
        Poll::Ready(read.and_then(|(view, chunks)| {
            self.chunks = chunks;
            self.next = view.page.next_seq;
            self.progress = self.translator.reload(&view, &mut self.frames)?;
            Ok(())
        }))
    }

    /// Adds the frames that are held back if their time has come. Returns pending if there are none yet.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(delay) = self.translator.delay() else { return Poll::Pending };
        let timer = self.flush.get_or_insert_with(|| Box::pin(tokio::time::sleep(delay)));
        ready!(timer.poll_unpin(cx));
        self.flush = None;
        Poll::Ready(self.translator.flush(&mut self.frames))
    }

    fn take_frames(&mut self) -> Bytes {
        std::mem::take(&mut self.frames).into()
    }

    fn broken(&mut self, error: Error) -> Poll<Read> {
        Poll::Ready(Read::broken(self.take_frames(), error))
    }
}

impl Source for Turn {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        let has_more = match self.read_ready(cx) {
            Ok(has_more) => has_more,
            Err(error) => return self.broken(error),
        };
        match self.progress {
            Progress::Done => return Poll::Ready(Read::last(self.take_frames())),
            Progress::Broken => {
                let message = "the stream does not show the whole turn; resume it";
                return self.broken(Error::new(ErrorCode::StoreUnavailable, message));
            }
            _ if !self.frames.is_empty() => return Poll::Ready(Read::more(self.take_frames())),
            Progress::Reload => {
                if let Poll::Ready(read) = self.poll_reload(cx) {
                    return match read {
                        Ok(()) => self.poll_read(cx),
                        Err(error) => self.broken(error),
                    };
                }
                return Poll::Pending;
            }
            Progress::Open if has_more => {
                // A backlog without anything for this client would otherwise occupy the thread.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Progress::Open => {}
        }
        match self.poll_flush(cx) {
            Poll::Ready(Ok(())) => return Poll::Ready(Read::more(self.take_frames())),
            Poll::Ready(Err(error)) => return self.broken(error),
            Poll::Pending => {}
        }
        if self.chunks.is_checking() {
            return Poll::Pending;
        }
        match self.end.poll(cx, self.next) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(_)) => {
                // The chunk that shows the end will not come: it was discarded, or the session was deleted.
                self.progress = self.translator.missed_end();
                self.poll_read(cx)
            }
            Poll::Ready(Err(error)) => self.broken(error),
        }
    }

    fn check_end(&mut self) {
        self.end.start(true);
    }
}

/// Reads the view of a session again, with the chunks that follow it.
async fn read_again(service: Arc<Service>, root: SessionIdentity) -> Result<(View, SessionChunks)> {
    let view = View::read_with_last_run(&service, &root).await?;
    let chunks = SessionChunks::open(service, root, view.page.next_seq).await?;
    Ok((view, chunks))
}
