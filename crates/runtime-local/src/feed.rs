//! What a run shows: chunks on their way to the stream, in batches.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, Effect, Mark, StreamManager};
use helix_agents_core::tool::ToolFeed;
use tokio::sync::Notify;

/// How long the first chunk of a batch waits for more.
const BATCH_TIME: Duration = Duration::from_millis(15);

/// From how many bytes on a batch does not wait.
const BATCH_BYTES: usize = 4 * 1024;

/// The writer of one run's chunks. Cheap to clone.
///
/// Showing never waits: chunks gather here, and whoever waits for an effect pumps them on. A
/// stream that cannot be written costs what people see, never the run.
#[derive(Debug, Clone)]
pub(crate) struct Feed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    streams: Arc<dyn StreamManager>,
    clock: Arc<dyn Clock>,
    agent: Arc<str>,
    session: SessionId,
    run: RunId,
    batch: Mutex<Batch>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Batch {
    parts: Vec<Part>,
    bytes: usize,
}

/// Chunks of one attempt in a row.
#[derive(Debug)]
struct Part {
    attempt: Option<Attempt>,
    chunks: Vec<Chunk>,
}

impl Feed {
    pub(crate) fn new(
        streams: Arc<dyn StreamManager>,
        clock: Arc<dyn Clock>,
        agent: Arc<str>,
        session: SessionId,
        run: RunId,
    ) -> Self {
        let (batch, wake) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { streams, clock, agent, session, run, batch, wake }))
    }

    pub(crate) fn chunk(&self, step: u32, kind: ChunkKind) -> Chunk {
        Chunk {
            agent: Arc::clone(&self.0.agent),
            session: self.0.session.clone(),
            run: self.0.run.clone(),
            step,
            at: self.0.clock.now(),
            kind,
        }
    }

    /// Shows a chunk of an attempt, or a boundary.
    pub(crate) fn show(&self, attempt: Option<Attempt>, step: u32, kind: ChunkKind) {
        let mut batch = self.0.batch.lock().unwrap_or_else(PoisonError::into_inner);
        batch.bytes += weight(&kind);
        let same = batch.parts.last_mut().filter(|part| part.attempt == attempt);
        let part = match same {
            Some(part) => part,
            None => {
                batch.parts.push(Part { attempt, chunks: Vec::new() });
                let Some(part) = batch.parts.last_mut() else { return };
                part
            }
        };
        let last = part.chunks.last_mut().map(|chunk| &mut chunk.kind);
        if let Some(kind) = joined(last, kind) {
            part.chunks.push(self.chunk(step, kind));
        }
        drop(batch);
        self.0.wake.notify_one();
    }

    /// Shows text of the model; the same as `show` without building a chunk for each piece.
    pub(crate) fn show_text(&self, attempt: Option<Attempt>, step: u32, delta: &str) {
        let mut batch = self.0.batch.lock().unwrap_or_else(PoisonError::into_inner);
        let last = batch.parts.last_mut().filter(|part| part.attempt == attempt);
        let last = last.and_then(|part| part.chunks.last_mut()).map(|chunk| &mut chunk.kind);
        if let Some(ChunkKind::TextDelta { delta: before }) = last {
            before.push_str(delta);
            batch.bytes += delta.len();
            if batch.bytes >= BATCH_BYTES {
                self.0.wake.notify_one();
            }
            return;
        }
        drop(batch);
        self.show(attempt, step, ChunkKind::TextDelta { delta: delta.to_owned() });
    }

    /// Waits for an effect and writes batches as they fill meanwhile; the last one is written when
    /// it returns.
    pub(crate) async fn while_pumping<T>(
        &self,
        effect: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> T {
        let done = AtomicBool::new(false);
        let effect = async {
            let out = effect.await;
            done.store(true, Ordering::Relaxed);
            self.0.wake.notify_one();
            out
        };
        // Both stay on this task: the pump is polled only when a chunk or the clock wakes it.
        futures_util::future::join(effect, self.pump(&done)).await.0
    }

    async fn pump(&self, done: &AtomicBool) {
        let done = || done.load(Ordering::Relaxed);
        loop {
            if !done() {
                self.0.wake.notified().await;
            }
            let full = async {
                while self.waiting_bytes() < BATCH_BYTES && !done() {
                    self.0.wake.notified().await;
                }
            };
            tokio::select! {
                biased;
                () = full => {}
                () = self.0.clock.sleep(BATCH_TIME) => {}
            }
            self.flush().await;
            if done() {
                return;
            }
        }
    }

    /// Writes what has gathered.
    pub(crate) async fn flush(&self) {
        let parts = {
            let mut batch = self.0.batch.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *batch).parts
        };
        for part in parts {
            let written = self.0.streams.append(&self.0.session, part.attempt, part.chunks).await;
            if let Err(error) = written
                && error.code() != ErrorCode::AttemptDiscarded
            {
                tracing::warn!(session = %self.0.session, %error, "chunks were not written");
            }
        }
    }

    /// Begins a try at an effect. Without a stream there is no attempt, and nothing is shown of
    /// it.
    pub(crate) async fn begin(&self, step: u32, effect: &Effect) -> Option<Attempt> {
        self.flush().await;
        let origin = self.chunk(step, ChunkKind::StepDiscarded { attempts: Vec::new() });
        match self.0.streams.begin_attempt(&origin, effect).await {
            Ok(attempt) => Some(attempt),
            Err(error) => {
                tracing::warn!(session = %self.0.session, %error, "no attempt could be begun");
                None
            }
        }
    }

    /// Brings the stream into line with the log after an append.
    pub(crate) async fn mark(
        &self,
        step: u32,
        version: u64,
        settled: Vec<Attempt>,
        discarded: Vec<Attempt>,
        boundaries: Vec<Chunk>,
    ) {
        self.flush().await;
        let origin = self.chunk(step, ChunkKind::Checkpoint { version });
        let mark = Mark { version, settled, discarded, origin, boundaries };
        if let Err(error) = self.0.streams.mark(&self.0.session, mark).await {
            tracing::warn!(session = %self.0.session, %error, "the stream was not marked");
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.0.batch.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

/// Puts a piece behind the one before it, if they are pieces of the same; else gives it back.
fn joined(last: Option<&mut ChunkKind>, next: ChunkKind) -> Option<ChunkKind> {
    match (last, next) {
        (Some(ChunkKind::TextDelta { delta: before }), ChunkKind::TextDelta { delta })
        | (
            Some(ChunkKind::Thinking { content: before, complete: false }),
            ChunkKind::Thinking { content: delta, complete: false },
        ) => before.push_str(&delta),
        (
            Some(ChunkKind::ToolArgDelta { index: same, delta: before }),
            ChunkKind::ToolArgDelta { index, delta },
        ) if *same == index => before.push_str(&delta),
        (_, next) => return Some(next),
    }
    None
}

fn weight(kind: &ChunkKind) -> usize {
    match kind {
        ChunkKind::TextDelta { delta } | ChunkKind::ToolArgDelta { delta, .. } => delta.len(),
        ChunkKind::Thinking { content, .. } => content.len(),
        // What people wait for is not held back.
        _ => BATCH_BYTES,
    }
}

/// The feed as one tool call has it.
pub(crate) struct CallFeed {
    pub(crate) feed: Feed,
    pub(crate) attempt: Option<Attempt>,
    pub(crate) step: u32,
}

impl ToolFeed for CallFeed {
    fn show(&self, kind: ChunkKind) {
        self.feed.show(self.attempt, self.step, kind);
    }
}
