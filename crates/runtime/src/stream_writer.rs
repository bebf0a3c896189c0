//! What a run shows: chunks on their way to the stream, in batches.

mod batch;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::event::Event;
use helix_agents_core::fault;
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::mutant;
use helix_agents_core::stream::{self, Boundary, Chunk, ChunkKind, Effect, StreamManager, Writer};
use helix_agents_core::tool::ToolStream;
use tokio::sync::Notify;

use crate::context::RuntimeContext;
use crate::stream_wait::StreamWait;
use batch::Batch;
pub(crate) use batch::FeedMark;

/// How long the first chunk of a batch waits for more.
const BATCH_TIME: Duration = Duration::from_millis(15);

/// The writer of one run's chunks. Cheap to clone.
///
/// Showing never waits: what is to be written gathers here, and whoever waits for an effect pumps
/// it on. Before the log gets the outcome of an effect, the stream has what the effect showed. A
/// batch that the stream could not take is written before the next one; a stream that cannot be
/// written for long costs what people see, never the run.
#[derive(Debug, Clone)]
pub(crate) struct StreamWriter(Arc<Inner>);

/// One try at an effect, before the stream has a number for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptHandle(u32);

#[derive(Debug)]
struct Inner {
    streams: Arc<dyn StreamManager>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    /// The root's session, whose stream it is.
    stream: SessionId,
    agent: Arc<str>,
    writer: Writer,
    run: RunId,
    batch: Mutex<Batch>,
    wait: StreamWait,
    /// Held while writing, so that batches arrive in their order: the batch before, if it could not
    /// be written.
    turn: tokio::sync::Mutex<Option<Unwritten>>,
    wake: Notify,
}

/// A batch that may still be written.
#[derive(Debug)]
struct Unwritten {
    batch: stream::Batch,
    begun: Vec<AttemptHandle>,
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
        let (streams, clock, ids) = (Arc::clone(streams), Arc::clone(clock), Arc::clone(ids));
        let (batch, turn, wake) = (Mutex::default(), tokio::sync::Mutex::default(), Notify::new());
        Self(Arc::new(Inner {
            streams,
            clock,
            ids,
            wait: wait.clone(),
            stream,
            agent,
            writer,
            run,
            batch,
            turn,
            wake,
        }))
    }

    pub(crate) fn chunk(&self, step: u32, kind: ChunkKind) -> Chunk {
        Chunk {
            agent: Arc::clone(&self.0.agent),
            session: self.0.writer.session.clone(),
            run: self.0.run.clone(),
            step,
            at: self.0.clock.now(),
            kind,
        }
    }

    /// What events show, each with its version.
    pub(crate) fn boundaries(
        &self,
        step: u32,
        shown: Vec<(u64, ChunkKind)>,
    ) -> impl Iterator<Item = Boundary> {
        shown
            .into_iter()
            .map(move |(version, kind)| Boundary { version, chunk: self.chunk(step, kind) })
    }

    /// Begins a try at an effect; an earlier one at the same effect is discarded.
    pub(crate) fn begin(&self, step: u32, effect: Effect) -> AttemptHandle {
        let origin = self.chunk(step, ChunkKind::StepDiscarded { attempts: Vec::new() });
        self.batch().begin(effect, origin)
    }

    /// Shows a chunk of a try, or a boundary.
    pub(crate) fn show(&self, ticket: Option<AttemptHandle>, step: u32, kind: ChunkKind) {
        self.batch().push(ticket, kind, |kind| self.chunk(step, kind));
        self.0.wake.notify_one();
    }

    /// Shows text of the model; the same as `show` without building a chunk for each piece.
    pub(crate) fn show_text(&self, ticket: AttemptHandle, step: u32, delta: &str) {
        let mut batch = self.batch();
        if !batch.extend_text(ticket, delta) {
            drop(batch);
            self.show(Some(ticket), step, ChunkKind::TextDelta { delta: delta.to_owned() });
        } else if batch.is_full() {
            self.0.wake.notify_one();
        }
    }

    /// Whether these events tell what came of a try.
    pub(crate) fn is_of(&self, ticket: AttemptHandle, events: &[Event]) -> bool {
        self.batch().effect(ticket).is_none_or(|effect| events.iter().any(|it| tells(it, effect)))
    }

    /// Returns `true` if a try executes this call.
    pub(crate) fn is_call(&self, ticket: AttemptHandle, id: &CallId) -> bool {
        let batch = self.batch();
        let effect = batch.effect(ticket);
        matches!(effect, Some(Effect::Tool { call } | Effect::Child { call }) if call == id)
    }

    /// Takes back what was shown of tries whose outcome is not theirs.
    pub(crate) fn abandon(&self, step: u32, tickets: &[AttemptHandle]) {
        if !tickets.is_empty() {
            let origin = self.chunk(step, ChunkKind::StepDiscarded { attempts: Vec::new() });
            self.batch().abandon(tickets, origin);
        }
    }

    /// Takes back what was shown of all tries that are not settled.
    pub(crate) fn abandon_all(&self, step: u32) {
        let tickets = self.batch().unsettled();
        self.abandon(step, &tickets);
    }

    /// Brings the stream into line with the log after an append: with the next batch.
    pub(crate) fn mark(&self, step: u32, mark: FeedMark) {
        let origin = self.chunk(step, ChunkKind::Checkpoint { version: mark.version });
        self.batch().mark(mark, origin);
        self.0.wake.notify_one();
    }

    /// Waits for an effect and writes batches as they fill meanwhile. What has gathered when it
    /// returns is written by the next [`flush`](Self::flush).
    pub(crate) async fn while_pumping<T>(
        &self,
        effect: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> T {
        let (done, ended) = (AtomicBool::new(false), Notify::new());
        let effect = async {
            let out = effect.await;
            done.store(true, Ordering::Relaxed);
            self.0.wake.notify_one();
            ended.notify_one();
            out
        };
        // Both stay on this task: the pump is polled only when a chunk or the clock wakes it. A
        // write that is under way when the effect ends is waited for, for a moment.
        futures_util::future::join(effect, self.pump(&done, &ended)).await.0
    }

    async fn pump(&self, done: &AtomicBool, ended: &Notify) {
        let done = || done.load(Ordering::Relaxed);
        while !done() {
            self.0.wake.notified().await;
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
            let enough = async {
                ended.notified().await;
                self.0.wait.enough().await;
            };
            tokio::select! {
                biased;
                () = self.write_all() => {}
                () = enough => {}
            }
        }
    }

    /// Writes what has gathered, if the stream takes it in a moment. What it does not take is written
    /// later.
    pub(crate) async fn flush(&self) {
        self.0.wait.briefly(self.write_all()).await;
    }

    /// The same when nothing comes after.
    pub(crate) async fn close(&self) {
        self.0.wait.last_chance(self.write_all()).await;
    }

    /// Writes what has gathered.
    ///
    /// # Cancel safety
    /// What it was writing is written by the next call.
    async fn write_all(&self) {
        let mut turn = self.0.turn.lock().await;
        let mut has_more = true;
        while self.write(&mut turn).await && has_more {
            let taken = self.batch().take();
            if taken.ops.is_empty() {
                return;
            }
            let (id, writer) = (self.0.ids.batch(), self.0.writer.clone());
            let batch = stream::Batch::new(id, writer, taken.ops);
            *turn = Some(Unwritten { batch, begun: taken.begun });
            has_more = taken.has_more;
        }
    }

    /// Writes a batch; whether the next one may follow. One that was not written is kept, and is the
    /// same batch when it is written again: the stream may have it already. What waits behind it
    /// has to stay bearable.
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
                let begun = std::mem::take(&mut unwritten.begun);
                self.batch().learn(begun, &written.begun);
            }
            Err(error) if error.is_retryable() && !self.batch().is_too_much() => {
                tracing::warn!(%session, %error, "chunks are not written yet");
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

/// Whether an event tells what came of an effect.
fn tells(event: &Event, effect: &Effect) -> bool {
    match (event, effect) {
        (Event::ModelReplied(reply), Effect::Model { step }) => reply.step == *step,
        (Event::ToolFinished(finish), Effect::Tool { call } | Effect::Child { call }) => {
            finish.call == *call
        }
        (Event::ChildStarted(start), Effect::Tool { call } | Effect::Child { call }) => {
            start.call == *call
        }
        _ => false,
    }
}

/// The feed as one tool call has it.
pub(crate) struct CallFeed {
    pub(crate) stream_writer: StreamWriter,
    pub(crate) ticket: AttemptHandle,
    pub(crate) step: u32,
}

impl ToolStream for CallFeed {
    fn show(&self, kind: ChunkKind) {
        self.stream_writer.show(Some(self.ticket), self.step, kind);
    }
}
