//! Processes that crash: a store and a stream as one process sees them, which nothing passes after the crash.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::clock::IdSource;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};
use tokio::sync::Notify;

/// The life of one simulated process. Clones are the same process.
#[derive(Debug, Clone)]
pub struct ProcessLife(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    number: usize,
    ticks: AtomicUsize,
    /// The tick at which the process crashes.
    crash_tick: usize,
    /// The duration of its models, tools and hooks.
    pace: Pace,
    state: Mutex<State>,
    /// Not a `watch` channel, because its wake order is random and no seed repeats it.
    changed: Notify,
    rng: Mutex<Rng>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Alive,
    /// It is stopped, and will continue as if nothing had happened.
    Still,
    Dead,
}

/// The duration of the models, tools and hooks of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// One model call or tool in this many is slow. 0 means none.
    pub once_in: usize,
    /// The longest delay of a slow one.
    pub at_most: Duration,
    /// One hook around runs, model calls and sub-agents in this many is slow. 0 means none.
    pub hooks: usize,
}

impl ProcessLife {
    /// Creates a process that crashes at this tick.
    #[must_use]
    pub fn new(number: usize, crash_tick: usize, pace: Pace, rng: Rng) -> Self {
        let (state, changed) = (Mutex::new(State::Alive), Notify::new());
        let (ticks, rng) = (AtomicUsize::new(0), Mutex::new(rng));
        Self(Arc::new(Inner { number, ticks, crash_tick, pace, state, changed, rng }))
    }

    /// Returns the number of the process.
    #[must_use]
    pub fn number(&self) -> usize {
        self.0.number
    }

    /// Ends the process.
    pub fn end(&self) {
        *self.state() = State::Dead;
        self.0.changed.notify_waiters();
    }

    /// Stops the process until it is woken.
    pub fn stand_still(&self) {
        self.change(State::Alive, State::Still);
    }

    /// Continues the process after a stop.
    pub fn wake(&self) {
        self.change(State::Still, State::Alive);
    }

    fn change(&self, from: State, to: State) {
        let mut state = self.state();
        if *state == from {
            *state = to;
            self.0.changed.notify_waiters();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_for(&self, state: State) {
        loop {
            // Created before the check, so that a change after the check wakes it.
            let changed = self.0.changed.notified();
            if *self.state() == state {
                return;
            }
            changed.await;
        }
    }

    /// Returns `true` if the process has crashed or ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.state() == State::Dead
    }

    /// Returns `true` if the process reached the tick at which it crashes.
    #[must_use]
    pub fn died_at_its_tick(&self) -> bool {
        self.0.ticks.load(Ordering::Relaxed) >= self.0.crash_tick
    }

    /// Returns `true` if the process is stopped.
    #[must_use]
    pub fn is_still(&self) -> bool {
        *self.state() == State::Still
    }

    /// Returns when the process has crashed or ended.
    pub async fn over(&self) {
        self.wait_for(State::Dead).await;
    }

    /// Returns at once if the process runs, when it continues if it is stopped, and never if it has ended.
    pub async fn awake(&self) {
        self.wait_for(State::Alive).await;
    }

    /// A point at which the process may crash, and at which other tasks may run first. A crashed process
    /// never gets past it.
    pub async fn tick(&self) {
        self.count();
        let pauses = self.roll(|rng| rng.below(3));
        for _ in 0..pauses {
            tokio::task::yield_now().await;
        }
        self.awake().await;
    }

    /// A point at which the process may crash but cannot be stopped: between the check that it may act and
    /// the act itself.
    async fn crash_point(&self) {
        self.count();
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// A point at which the process may take long, if it is slow.
    pub async fn linger(&self) {
        let Pace { once_in, at_most, .. } = self.0.pace;
        if once_in > 0 {
            let most = usize::try_from(at_most.as_millis()).unwrap_or(usize::MAX);
            let millis = self.roll(|rng| rng.once_in(once_in).then(|| rng.below(most)));
            if let Some(millis) = millis {
                tokio::time::sleep(Duration::from_millis(millis as u64)).await;
            }
            self.awake().await;
        }
    }

    /// Delays a hook if the hooks of the process are slow. `at` determines the delay.
    async fn delay_hook(&self, at: impl Hash) {
        let Pace { hooks, at_most, .. } = self.0.pace;
        if hooks > 0 {
            let mut rng = Rng::of((self.number(), at));
            if rng.once_in(hooks) {
                let most = usize::try_from(at_most.as_millis()).unwrap_or(usize::MAX);
                tokio::time::sleep(Duration::from_millis(rng.below(most) as u64)).await;
            }
            self.awake().await;
        }
    }

    fn count(&self) {
        if self.0.ticks.fetch_add(1, Ordering::Relaxed) + 1 >= self.0.crash_tick {
            self.end();
        }
    }

    /// Calls a function with the random number generator of the process.
    pub fn roll<T>(&self, roll: impl FnOnce(&mut Rng) -> T) -> T {
        roll(&mut self.0.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The processes of runs, by which a tool finds the process that executes it.
#[derive(Debug, Clone, Default)]
pub struct RunProcesses(Arc<Mutex<HashMap<RunId, ProcessLife>>>);

impl RunProcesses {
    /// Records that this process has the run, unless another live process has it. A process has a run once the store
    /// has accepted an append of it: other processes may have tried to start a run of the same id.
    pub fn note(&self, run: Option<&RunId>, life: &ProcessLife) {
        let Some(run) = run else { return };
        let mut lives = self.lock();
        let noted = lives.entry(run.clone()).or_insert_with(|| life.clone());
        if noted.is_over() {
            // An engine continues the run, or a session that replaced a deleted one has a run of the same id.
            *noted = life.clone();
        }
    }

    /// Returns the process of a run.
    #[must_use]
    pub fn of(&self, run: &RunId) -> Option<ProcessLife> {
        self.lock().get(run).cloned()
    }

    /// Returns `true` if the process of this run has ended.
    pub(super) fn are_over(&self, run: &RunId) -> bool {
        self.of(run).is_none_or(|life| life.is_over())
    }

    /// A point at which the process of this run may crash.
    pub(super) async fn tick(&self, run: &RunId) {
        if let Some(life) = self.of(run) {
            life.tick().await;
        }
    }

    /// A point at which the process of this run may crash but cannot be stopped.
    pub(super) async fn crash_point(&self, run: &RunId) {
        if let Some(life) = self.of(run) {
            life.crash_point().await;
        }
    }

    /// A point at which the process of this run may take long.
    pub(super) async fn linger(&self, run: &RunId) {
        if let Some(life) = self.of(run) {
            life.linger().await;
        }
    }

    /// Delays a hook of this run if the hooks of its process are slow.
    pub(super) async fn delay_hook(&self, run: &RunId, hook: &str) {
        if let Some(life) = self.of(run) {
            life.delay_hook((run, hook)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, ProcessLife>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store as one process sees it.
#[derive(Debug)]
pub(super) struct ProcessStore {
    pub(super) inner: Arc<dyn StateStore>,
    pub(super) life: ProcessLife,
    pub(super) lives: RunProcesses,
}

impl ProcessStore {
    async fn pass<T>(&self, operation: impl Future<Output = T>) -> T {
        self.life.tick().await;
        let done = operation.await;
        self.life.tick().await;
        done
    }

    /// Executes an append. Occasionally the request or its reply is lost.
    async fn append_by<T>(&self, operation: impl Future<Output = Result<T>>) -> Result<T> {
        let lost = || Error::new(ErrorCode::StoreUnavailable, "injected fault: the reply was lost");
        let fault = self.life.roll(|rng| rng.below(80));
        if fault == 0 {
            return self.pass(async { Err(lost()) }).await;
        }
        let done = self.pass(operation).await?;
        if fault == 1 { Err(lost()) } else { Ok(done) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for ProcessStore {
    fn scope(&self) -> StoreScope {
        self.inner.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.inner.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.inner.max_append_bytes()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let run = first.run.clone();
        let outcome = self.append_by(self.inner.create_session(new, first)).await?;
        if matches!(outcome, CreateOutcome::Created { .. }) {
            self.lives.note(run.as_ref(), &self.life);
        }
        Ok(outcome)
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.append_by(self.inner.fork(from, new, first)).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        let run = append.run.clone();
        let outcome = self.append_by(self.inner.append(append)).await?;
        if matches!(outcome, AppendOutcome::Appended { .. }) {
            self.lives.note(run.as_ref(), &self.life);
        }
        Ok(outcome)
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

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.pass(self.inner.list_usage(filter, page)).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.pass(self.inner.renew(session, run, ttl)).await
    }

    // Snapshots are a cache, so no crash is needed here: the log is read before and after.
    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.inner.save_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.inner.snapshot(session).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.pass(self.inner.delete(session)).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        self.pass(self.inner.delete_if(session, required_tags)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.pass(self.inner.purge(purge)).await
    }
}

/// A stream as one process sees it.
#[derive(Debug)]
pub(super) struct ProcessStreams {
    pub(super) inner: Arc<dyn StreamManager>,
    pub(super) life: ProcessLife,
}

#[async_trait]
impl StreamManager for ProcessStreams {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
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

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.life.tick().await;
        self.inner.forget(stream, seen).await
    }
}

/// Consecutive ids, the same in each execution of a story. Clones share the counter.
#[derive(Debug, Clone, Default)]
pub struct Counted(Arc<AtomicU64>);

impl IdSource for Counted {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
