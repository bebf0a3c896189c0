//! Simulated processes: each has its own executor and its own tokio runtime, and ends when that runtime is shut down.

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

/// The time that the threads of a process may take to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// A factory for one kind of runtime.
#[async_trait]
pub trait Boot: Send + Sync {
    /// Starts the work of a process.
    async fn boot(&self, with: ProcessConfig) -> StartedProcess;

    /// Returns the engine's records, as specified by [`RuntimeHarness::engine_records`].
    async fn engine_records(&self, _sessions: &[SessionId]) -> String {
        String::new()
    }
}

/// Async functions are factories too.
#[async_trait]
impl<F, B> Boot for F
where
    F: Fn(ProcessConfig) -> B + Send + Sync,
    B: Future<Output = StartedProcess> + Send,
{
    async fn boot(&self, with: ProcessConfig) -> StartedProcess {
        self(with).await
    }
}

/// The configuration of a process.
#[derive(Debug)]
pub struct ProcessConfig {
    /// The configuration of its executor.
    pub world: World,
    /// The session store: that of the world, or of the harness.
    pub store: Arc<dyn StateStore>,
    /// The stream manager of the process.
    pub streams: Arc<dyn StreamManager>,
    /// The tokio runtime that executes its work.
    pub tasks_on: Handle,
}

/// A started process.
pub struct StartedProcess {
    /// The executor of the process.
    pub executor: Arc<dyn AgentExecutor>,
    /// The worker, which is dropped before the threads end.
    pub worker: Box<dyn Any + Send>,
}

impl StartedProcess {
    /// Creates a process that has an executor and nothing else.
    pub fn of(executor: impl AgentExecutor) -> Self {
        Self { executor: Arc::new(executor), worker: Box::new(()) }
    }
}

/// A harness for the runtime of a [`Boot`], on one store.
pub struct Processes<S, B> {
    store: S,
    boot: B,
    running: Mutex<Vec<Process>>,
    // Dropped last: what the store needs, and what cleans up after it.
    _place: Box<dyn Any + Send + Sync>,
}

struct Process {
    worker: Box<dyn Any + Send>,
    threads: Runtime,
}

impl<S, B> Processes<S, B> {
    /// Creates a harness without processes. `place` is kept until the store is no longer used.
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
        let with = ProcessConfig {
            store: world.store.clone().unwrap_or_else(|| self.store()),
            streams: world.streams.clone().unwrap_or_else(|| self.streams()),
            tasks_on: threads.handle().clone(),
            world,
        };
        let StartedProcess { executor, worker } = self.boot.boot(with).await;
        self.running.lock().unwrap().push(Process { worker, threads });
        executor
    }

    async fn kill(&self) {
        let processes: Vec<_> = self.running.lock().unwrap().drain(..).collect();
        // Waits until the threads have stopped, so that a killed process does nothing more.
        let stop = move || {
            for Process { worker, threads } in processes {
                drop(worker);
                threads.shutdown_timeout(SHUTDOWN_TIMEOUT);
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

impl fmt::Debug for StartedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedProcess").field("executor", &self.executor).finish_non_exhaustive()
    }
}
