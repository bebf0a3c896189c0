//! Processes that die: a store and a stream as one process sees them, out of which nothing gets any
//! more once it is dead.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::IdSource;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Reach,
    Renewal, SessionFilter, StateStore, StoredAppend,
};
use helix_agents_core::stream::{Batch, ChunkStream, StreamInfo, StreamManager, Written};
use tokio::sync::watch;

use super::dice::Dice;

/// The life of one process. Clones are the same process.
#[derive(Debug, Clone)]
pub(super) struct Life(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    number: usize,
    ticks: AtomicUsize,
    /// At which tick it dies.
    dies_at: usize,
    dead: watch::Sender<bool>,
    dice: Mutex<Dice>,
}

impl Life {
    pub(super) fn new(number: usize, dies_at: usize, dice: Dice) -> Self {
        let (dead, _) = watch::channel(false);
        let (ticks, dice) = (AtomicUsize::new(0), Mutex::new(dice));
        Self(Arc::new(Inner { number, ticks, dies_at, dead, dice }))
    }

    /// Which process it is.
    pub(super) fn number(&self) -> usize {
        self.0.number
    }

    pub(super) fn end(&self) {
        self.0.dead.send_replace(true);
    }

    pub(super) fn is_over(&self) -> bool {
        *self.0.dead.borrow()
    }

    /// Returns when the process is dead.
    pub(super) async fn over(&self) {
        let mut dead = self.0.dead.subscribe();
        drop(dead.wait_for(|dead| *dead).await);
    }

    /// A place where the process may die, and where others may be first. A dead process never
    /// gets past it.
    pub(super) async fn tick(&self) {
        if self.0.ticks.fetch_add(1, Ordering::Relaxed) + 1 >= self.0.dies_at {
            self.end();
        }
        let pauses = self.roll(|dice| dice.below(3));
        for _ in 0..pauses {
            tokio::task::yield_now().await;
        }
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn roll<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut self.0.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Which process carries out a run: how a tool finds out in whose life it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Lives(Arc<Mutex<HashMap<RunId, Life>>>);

impl Lives {
    fn note(&self, run: Option<&RunId>, life: &Life) {
        let Some(run) = run else { return };
        let mut lives = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lives.entry(run.clone()).or_insert_with(|| life.clone());
    }

    /// Whether the process of this run is dead.
    pub(super) fn are_over(&self, run: &RunId) -> bool {
        let lives = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lives.get(run).is_none_or(Life::is_over)
    }

    /// A place where the process of this run may die.
    pub(super) async fn tick(&self, run: &RunId) {
        let lives = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let life = lives().get(run).cloned();
        if let Some(life) = life {
            life.tick().await;
        }
    }
}

/// A store as one process sees it.
#[derive(Debug)]
pub(super) struct MortalStore {
    pub(super) inner: Arc<dyn StateStore>,
    pub(super) life: Life,
    pub(super) lives: Lives,
}

impl MortalStore {
    async fn pass<T>(&self, operation: impl Future<Output = T>) -> T {
        self.life.tick().await;
        let done = operation.await;
        self.life.tick().await;
        done
    }

    /// Now and then an append does not arrive, or its answer does not.
    async fn append_by<T>(&self, operation: impl Future<Output = Result<T>>) -> Result<T> {
        let lost = || Error::new(ErrorCode::StoreUnavailable, "as arranged: the answer is lost");
        let fault = self.life.roll(|dice| dice.below(80));
        if fault == 0 {
            return self.pass(async { Err(lost()) }).await;
        }
        let done = self.pass(operation).await?;
        if fault == 1 { Err(lost()) } else { Ok(done) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for MortalStore {
    fn reach(&self) -> Reach {
        self.inner.reach()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.inner.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.inner.max_append_bytes()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.lives.note(first.run.as_ref(), &self.life);
        self.append_by(self.inner.create_session(new, first)).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.append_by(self.inner.fork(from, new, first)).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.lives.note(append.run.as_ref(), &self.life);
        self.append_by(self.inner.append(append)).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.pass(self.inner.read_log(session, after, limit)).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.pass(self.inner.head(session)).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.pass(self.inner.list(filter, page)).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.pass(self.inner.renew(session, run, ttl)).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.pass(self.inner.delete(session)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.pass(self.inner.purge(purge)).await
    }
}

/// A stream as one process sees it.
#[derive(Debug)]
pub(super) struct MortalStreams {
    pub(super) inner: Arc<dyn StreamManager>,
    pub(super) life: Life,
}

#[async_trait]
impl StreamManager for MortalStreams {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<Written> {
        self.life.tick().await;
        let done = self.inner.write(stream, batch).await;
        self.life.tick().await;
        done
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.life.tick().await;
        self.inner.read(stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.life.tick().await;
        self.inner.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.life.tick().await;
        self.inner.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId) -> Result<()> {
        self.life.tick().await;
        self.inner.forget(stream).await
    }
}

/// Ids in order, the same for the same story. Clones go on counting together.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted(Arc<AtomicU64>);

impl IdSource for Counted {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
