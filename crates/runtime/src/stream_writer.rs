//! Writes the chunks of a run to the stream in batches.

mod batch;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::join;
use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::clock::{Clock, IdSource, Timestamp};
use helix_agents_core::fault;
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::mutant;
use helix_agents_core::stream::{self, Boundary, Chunk, ChunkKind, Effect, StreamManager, Writer};
use helix_agents_core::tool::ToolStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::context::RuntimeContext;
use crate::stream_wait::StreamWait;
use crate::wake_filter::WakeFilter;
use batch::Batch;
pub(crate) use batch::WatermarkUpdate;

/// How long the first chunk of a batch waits for more chunks.
const BATCH_TIME: Duration = Duration::from_millis(15);

/// The writer of one run's chunks. Cheap to clone.
///
/// Showing a chunk never waits: chunks are buffered here, and the future that waits for an effect also writes them. The
/// chunks of an effect are normally written before its outcome is appended to the log. If the stream does not accept
/// them in time, the append goes first. A failed batch is retried before the next one. A stream that stays unavailable
/// only affects what clients see, never the run.
#[derive(Debug, Clone)]
pub(crate) struct StreamWriter(Arc<Inner>);

/// A handle of one attempt of an effect. It is valid before the stream has assigned an attempt number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptHandle(u32);

#[derive(Debug)]
struct Inner {
    streams: Arc<dyn StreamManager>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    /// The root session, which owns the stream.
    stream: SessionId,
    agent: Arc<str>,
    writer: Writer,
    run: RunId,
    batch: Mutex<Batch>,
    wait: StreamWait,
    /// Limits the polls of the pump. A run has at most one pump at a time.
    wake_filter: WakeFilter,
    /// `true` if batches and appends go through one [`WriteQueue`](helix_agents_core::store::WriteQueue).
    shares_queue: bool,
    /// The batch that is being written, or that failed and is retried next. Locked while writing, so that batches
    /// arrive in order.
    turn: tokio::sync::Mutex<Option<Unwritten>>,
    wake: Notify,
}

/// A batch that has not been written successfully yet.
#[derive(Debug)]
struct Unwritten {
    batch: stream::Batch,
    started: Vec<AttemptHandle>,
}

impl StreamWriter {
    pub(crate) fn new(
        context: &RuntimeContext,
        stream: SessionId,
        agent: Arc<str>,
        writer: Writer,
        run: RunId,
    ) -> Self {
        let RuntimeContext { streams, clock, ids, stream_wait: wait, .. } = context;
        let queue = streams.write_queue();
        let shares_queue = queue.is_some() && queue == context.store.write_queue();
        let (streams, clock, ids) = (Arc::clone(streams), Arc::clone(clock), Arc::clone(ids));
        let (batch, turn, wake) = (Mutex::default(), tokio::sync::Mutex::default(), Notify::new());
        Self(Arc::new(Inner {
            streams,
            clock,
            ids,
            wait: wait.with_timer(),
            wake_filter: WakeFilter::new(),
            shares_queue,
            stream,
            agent,
            writer,
            run,
            batch,
            turn,
            wake,
        }))
    }

    fn chunk(&self, step: u32, kind: ChunkKind) -> Arc<Chunk> {
        self.chunk_at(self.0.clock.now(), step, kind)
    }

    fn chunk_at(&self, at: Timestamp, step: u32, kind: ChunkKind) -> Arc<Chunk> {
        let Inner { agent, writer: Writer { session, .. }, run, .. } = &*self.0;
        let (agent, session, run) = (Arc::clone(agent), session.clone(), run.clone());
        Arc::new(Chunk { agent, session, run, step, at, kind })
    }

    /// Returns the boundaries for chunks of events, each with its log version.
    pub(crate) fn boundaries(
        &self,
        step: u32,
        shown: Vec<(u64, ChunkKind)>,
    ) -> impl Iterator<Item = Boundary> {
        let at = self.0.clock.now();
        shown
            .into_iter()
            .map(move |(version, kind)| Boundary { version, chunk: self.chunk_at(at, step, kind) })
    }

    /// Starts an attempt of an effect. An earlier attempt of the same effect is discarded.
    pub(crate) fn start_attempt(&self, step: u32, effect: Effect) -> AttemptHandle {
        let origin = self.chunk(step, ChunkKind::StepDiscarded { attempts: Vec::new() });
        self.batch().begin(effect, origin)
    }

    /// Shows a chunk of an attempt, or a boundary chunk.
    pub(crate) fn show(&self, attempt: Option<AttemptHandle>, step: u32, kind: ChunkKind) {
        let mut batch = self.batch();
        batch.push(attempt, kind, |kind| self.chunk(step, kind));
        self.wake_pump(&mut batch);
    }

    /// Shows a text delta of the model. Same as `show`, but without building a chunk for each delta.
    pub(crate) fn show_text(&self, attempt: AttemptHandle, step: u32, delta: &str) {
        let mut batch = self.batch();
        if !batch.extend_text(attempt, delta) {
            drop(batch);
            self.show(Some(attempt), step, ChunkKind::TextDelta { delta: delta.to_owned() });
        } else {
            self.wake_pump(&mut batch);
        }
    }

    /// Returns the effect of an attempt that is not settled.
    pub(crate) fn effect(&self, attempt: AttemptHandle) -> Option<Effect> {
        self.batch().effect(attempt).cloned()
    }

    /// Returns `true` if the attempt executes this call.
    pub(crate) fn is_call(&self, attempt: AttemptHandle, id: &CallId) -> bool {
        let batch = self.batch();
        let effect = batch.effect(attempt);
        matches!(effect, Some(Effect::Tool { call } | Effect::Child { call }) if call == id)
    }

    /// Discards attempts whose outcome was not recorded by this run.
    pub(crate) fn discard(&self, step: u32, attempts: &[AttemptHandle]) {
        if !attempts.is_empty() {
            let origin = self.chunk(step, ChunkKind::StepDiscarded { attempts: Vec::new() });
            self.batch().discard(attempts, origin);
        }
    }

    /// Discards all attempts that are not settled.
    pub(crate) fn discard_all(&self, step: u32) {
        let attempts = self.batch().unsettled();
        self.discard(step, &attempts);
    }

    /// Adds the watermark of an append to the next batch.
    pub(crate) fn watermark(&self, step: u32, watermark: WatermarkUpdate) {
        let origin = self.chunk(step, ChunkKind::Checkpoint { version: watermark.version });
        let mut batch = self.batch();
        batch.watermark(watermark, origin);
        self.wake_pump(&mut batch);
    }

    /// Wakes the pump after an operation was added, unless the operation only joins a batch whose timer is running: each
    /// wakeup polls the whole run.
    fn wake_pump(&self, batch: &mut Batch) {
        if batch.note_news() {
            self.0.wake.notify_one();
        }
    }

    /// Waits for an effect and writes batches concurrently. Chunks that remain when it returns are written by the next
    /// [`flush`](Self::flush).
    pub(crate) async fn while_pumping<T>(
        &self,
        mut effect: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> T {
        let (done, ended) = (AtomicBool::new(false), Notify::new());
        let mut pump = pin!(self.pump(&done, &ended));
        let wake_filter = &self.0.wake_filter;
        wake_filter.restart();
        let mut out = None;
        // Both run on this task, so no task has to be spawned. A write that is in progress when the effect ends is
        // awaited briefly.
        poll_fn(|cx| {
            let poll_effect = |cx: &mut Context<'_>| {
                if out.is_none()
                    && let Poll::Ready(output) = effect.as_mut().poll(cx)
                {
                    out = Some(output);
                    done.store(true, Ordering::Relaxed);
                    self.0.wake.notify_one();
                    ended.notify_one();
                }
            };
            match wake_filter.poll_after(poll_effect, pump.as_mut(), cx) {
                // The pump ends after the effect.
                Poll::Ready(()) => out.take().map_or(Poll::Pending, Poll::Ready),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    async fn pump(&self, done: &AtomicBool, ended: &Notify) {
        let done = || done.load(Ordering::Relaxed);
        // The previous effect may have ended before its last chunks were written.
        let mut has_rest = self.has_rest();
        while !done() {
            if !has_rest && !self.batch().has_news() {
                self.0.wake.notified().await;
            }
            has_rest = false;
            let full = async {
                while !self.batch().is_full() && !done() {
                    self.0.wake.notified().await;
                }
            };
            tokio::select! {
                biased;
                () = full => {}
                () = self.0.clock.sleep(BATCH_TIME) => {}
            }
            if done() {
                return;
            }
            // If the write fails, the next chunk wakes the pump and the write is retried.
            self.batch().clear_news();
            let timeout_elapsed = async {
                ended.notified().await;
                self.0.wait.timeout_elapsed().await;
            };
            tokio::select! {
                biased;
                () = self.write_all() => {}
                () = timeout_elapsed => {}
            }
        }
    }

    /// Returns `true` if chunks are buffered, or if a batch is being written or was not accepted.
    fn has_rest(&self) -> bool {
        self.batch().has_pending() || self.0.turn.try_lock().map_or(true, |turn| turn.is_some())
    }

    /// Writes the buffered chunks, waiting briefly. Chunks that are not written in time are written later.
    ///
    /// Must not be called by an effect of [`while_pumping`](Self::while_pumping). If the run is cancelled, the effect is
    /// kept but no longer polled, so its unfinished write would block the pump until streams count as unavailable.
    pub(crate) async fn flush(&self) {
        self.0.wait.wait_if_available(self.write_all()).await;
    }

    /// Writes the buffered chunks, then runs `append`. If the chunks cannot be written in time, `append` runs without
    /// waiting for them. If the stream and the store share a write queue and one batch holds all chunks, `append` is
    /// submitted directly behind that batch, because the queue preserves the order. Also returns the monotonic time at
    /// which `append` was submitted.
    pub(crate) async fn flush_before<T>(
        &self,
        append: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> (Duration, T) {
        let mut flush = pin!(self.flush());
        if !self.0.shares_queue {
            flush.await;
        } else if poll_fn(|cx| Poll::Ready(flush.as_mut().poll(cx))).await.is_pending() {
            // If nothing is buffered any more, the last chunks are in a batch that was sent.
            if !self.batch().has_pending() {
                let submitted = self.0.clock.monotonic();
                return (submitted, join(flush, append).await.1);
            }
            flush.await;
        }
        (self.0.clock.monotonic(), append.await)
    }

    /// Writes the buffered chunks at the end of the run, even if the stream counts as unavailable. Returns `true` if no
    /// chunks are left.
    pub(crate) async fn close(&self) -> bool {
        self.0.wait.wait_once(self.write_all()).await;
        !self.has_rest()
    }

    /// Writes the chunks that [`close`](Self::close) did not write in time. It retries for as long as operations on an
    /// unavailable store are retried, unless `stop` is cancelled first.
    pub(crate) async fn write_rest(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.write_all()).await;
    }

    /// Writes all buffered chunks.
    ///
    /// # Cancel safety
    /// If the future is dropped, the next call writes the interrupted batch again.
    async fn write_all(&self) {
        let mut turn = self.0.turn.lock().await;
        let mut has_more = true;
        // A write may reveal the number of an attempt that has been discarded meanwhile.
        while self.write(&mut turn).await && (has_more || self.batch().has_discard()) {
            let taken = self.batch().take();
            if taken.ops.is_empty() {
                return;
            }
            let (id, writer) = (self.0.ids.batch(), self.0.writer.clone());
            let batch = stream::Batch::new(id, writer, taken.ops);
            *turn = Some(Unwritten { batch, started: taken.started });
            has_more = taken.has_more;
        }
    }

    /// Writes a batch. Returns `true` if the next batch may follow. A batch that fails with a retryable error is kept
    /// and retried unchanged, because the stream may have stored it. It is dropped after any other error, or once too
    /// many chunks wait behind it.
    async fn write(&self, turn: &mut Option<Unwritten>) -> bool {
        let Some(unwritten) = turn else { return true };
        fault::point("feed.before_write");
        let Inner { streams, stream, writer: Writer { session, .. }, .. } = &*self.0;
        let written = streams.write(stream, unwritten.batch.clone()).await;
        fault::point("feed.after_write");
        match written {
            Ok(written) => {
                self.0.wait.answered();
                if written.is_superseded {
                    tracing::info!(%session, "a later run of the session has taken over the stream");
                }
                let started = std::mem::take(&mut unwritten.started);
                self.batch().set_numbers(started, &written.started);
            }
            Err(error) if error.is_retryable() && !self.batch().exceeds_limit() => {
                tracing::warn!(%session, %error, "chunks could not be written yet");
                if mutant!("batch-renamed") {
                    let (writer, ops) = (self.0.writer.clone(), unwritten.batch.ops.to_vec());
                    unwritten.batch = stream::Batch::new(self.0.ids.batch(), writer, ops);
                }
                return false;
            }
            Err(error) => {
                tracing::warn!(%session, %error, "chunks were not written");
                self.batch().lost(&unwritten.batch.ops);
            }
        }
        *turn = None;
        true
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.0.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream of one tool call.
pub(crate) struct CallStream {
    pub(crate) stream_writer: StreamWriter,
    pub(crate) attempt: AttemptHandle,
    pub(crate) step: u32,
}

impl ToolStream for CallStream {
    fn show(&self, kind: ChunkKind) {
        self.stream_writer.show(Some(self.attempt), self.step, kind);
    }
}

#[cfg(test)]
mod tests;
