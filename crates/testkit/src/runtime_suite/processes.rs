//! Processes, so to speak: executors that have the threads of a tokio runtime of their own, and end with it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use tokio::runtime::{Handle, Runtime};

use super::{RuntimeHarness, World};

/// How long the threads of a process may take to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Puts one kind of runtime together.
#[async_trait]
pub trait Boot: Send + Sync {
    /// What a process does as soon as it runs.
    async fn boot(&self, with: Beginning) -> StartedRun;

    /// What the engine has on record, as [`RuntimeHarness::engine_records`] says.
    async fn engine_records(&self, _sessions: &[SessionId]) -> String {
        String::new()
    }
}

/// An async function puts one together, too.
#[async_trait]
impl<F, B> Boot for F
where
    F: Fn(Beginning) -> B + Send + Sync,
    B: Future<Output = StartedRun> + Send,
{
    async fn boot(&self, with: Beginning) -> StartedRun {
        self(with).await
    }
}

/// What a process begins with.
#[derive(Debug)]
pub struct Beginning {
    /// What its executor is booted with.
    pub world: World,
    /// Where it keeps logs: the world's store, or that of the harness.
    pub store: Arc<dyn StateStore>,
    /// Where it keeps streams.
    pub streams: Arc<dyn StreamManager>,
    /// Where its work is done.
    pub tasks_on: Handle,
}

/// What a process has.
pub struct StartedRun {
    /// Its executor.
    pub executor: Arc<dyn AgentExecutor>,
    /// What goes before its threads do.
    pub worker: Box<dyn Any + Send>,
}

impl StartedRun {
    /// A process that has an executor and nothing else.
    pub fn of(executor: impl AgentExecutor) -> Self {
        Self { executor: Arc::new(executor), worker: Box::new(()) }
    }
}

/// The harness of a runtime that a [`Boot`] puts together, on one store.
pub struct Processes<S, B> {
    store: S,
    boot: B,
    running: Mutex<Vec<Process>>,
    // Dropped after all else: what the store needs, and what removes what is left of it.
    _place: Box<dyn Any + Send + Sync>,
}

struct Process {
    worker: Box<dyn Any + Send>,
    threads: Runtime,
}

impl<S, B> Processes<S, B> {
    /// None yet. `place` is kept until nobody uses the store any more.
    pub fn new(store: S, place: impl Any + Send + Sync, boot: B) -> Self {
        Self { store, boot, running: Mutex::default(), _place: Box::new(place) }
    }
}

impl<S, B> Drop for Processes<S, B> {
    fn drop(&mut self) {
        for Process { worker, threads } in self.running.lock().unwrap().drain(..) {
            drop(worker);
            threads.shutdown_background();
        }
    }
}

#[async_trait]
impl<S, B> RuntimeHarness for Processes<S, B>
where
    S: StateStore + StreamManager + Clone,
    B: Boot,
{
    fn store(&self) -> Arc<dyn StateStore> {
        Arc::new(self.store.clone())
    }

    fn streams(&self) -> Arc<dyn StreamManager> {
        Arc::new(self.store.clone())
    }

    async fn boot(&self, world: World) -> Arc<dyn AgentExecutor> {
        let threads =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let threads = threads.unwrap();
        let with = Beginning {
            store: world.store.clone().unwrap_or_else(|| self.store()),
            streams: world.streams.clone().unwrap_or_else(|| self.streams()),
            tasks_on: threads.handle().clone(),
            world,
        };
        let StartedRun { executor, worker } = self.boot.boot(with).await;
        self.running.lock().unwrap().push(Process { worker, threads });
        executor
    }

    async fn kill(&self) {
        let processes: Vec<_> = self.running.lock().unwrap().drain(..).collect();
        // Waits until the threads have stopped: a killed process does nothing any more.
        let stop = move || {
            for Process { worker, threads } in processes {
                drop(worker);
                threads.shutdown_timeout(PATIENCE);
            }
        };
        tokio::task::spawn_blocking(stop).await.unwrap();
    }

    async fn engine_records(&self, sessions: &[SessionId]) -> String {
        self.boot.engine_records(sessions).await
    }
}

impl<S, B> fmt::Debug for Processes<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processes").finish_non_exhaustive()
    }
}

impl fmt::Debug for StartedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("executor", &self.executor).finish_non_exhaustive()
    }
}
