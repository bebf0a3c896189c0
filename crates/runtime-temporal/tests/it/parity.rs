//! The parity suite, on stores that processes share.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents_testkit::runtime_suite::{RuntimeHarness, World};
use helix_agents_testkit::servers;
use tokio::runtime::Runtime;

const LEAST_LEASE: Duration = Duration::from_secs(3);

/// A store, and the threads of the processes that were booted on it.
struct Harness<S> {
    store: S,
    /// What workflows of this harness are called by: its sessions are those of others, too.
    prefix: String,
    processes: Mutex<Vec<Process>>,
    // Dropped after all else: what the store needs, and what removes what is left of it.
    _place: Box<dyn Any + Send + Sync>,
}

/// A tokio runtime of its own, which dies with its process, and the worker on it.
struct Process {
    tokio: Runtime,
    worker: TemporalWorker,
}

impl<S> Harness<S> {
    fn new(store: S, place: impl Any + Send + Sync) -> Self {
        let prefix = servers::unique();
        Self { store, prefix, processes: Mutex::default(), _place: Box::new(place) }
    }
}

impl<S> Drop for Harness<S> {
    fn drop(&mut self) {
        for Process { tokio, worker } in self.processes.lock().unwrap().drain(..) {
            drop(worker);
            tokio.shutdown_background();
        }
    }
}

#[async_trait]
impl<S: StateStore + StreamManager + Clone> RuntimeHarness for Harness<S> {
    fn store(&self) -> Arc<dyn StateStore> {
        Arc::new(self.store.clone())
    }

    fn streams(&self) -> Arc<dyn StreamManager> {
        Arc::new(self.store.clone())
    }

    async fn boot(&self, world: World) -> Arc<dyn AgentExecutor> {
        let tokio =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let tokio = tokio.unwrap();
        let builder = TemporalRuntime::builder()
            .state_store(world.store.unwrap_or_else(|| self.store()))
            .stream_manager(self.streams())
            .llm_adapter(world.llm)
            .registry(world.registry)
            // Each part takes a way over the server: on a busy machine a lease has to outlast that.
            .lease(world.lease.max(LEAST_LEASE))
            .grace(world.grace)
            .auto_resume(world.auto_resume)
            .tasks_on(tokio.handle().clone())
            .target(servers::temporal())
            .task_queue(servers::unique())
            .own_queue(true)
            .prefix(&*self.prefix)
            // What goes wrong is to be seen, and not to be tried until it is right.
            .attempts(1);
        let begin = async {
            let runtime = builder.connect().await.unwrap();
            let worker = TemporalWorker::builder(&runtime).start().await.unwrap();
            (runtime, worker)
        };
        let (runtime, worker) = tokio.spawn(begin).await.unwrap();
        self.processes.lock().unwrap().push(Process { tokio, worker });
        Arc::new(runtime)
    }

    async fn kill(&self) {
        let processes: Vec<_> = self.processes.lock().unwrap().drain(..).collect();
        // Waits until the threads have stopped: a killed process does nothing any more.
        let stop = move || {
            for Process { tokio, worker } in processes {
                drop(worker);
                tokio.shutdown_timeout(Duration::from_secs(60));
            }
        };
        tokio::task::spawn_blocking(stop).await.unwrap();
    }
}

mod sqlite {
    use helix_agents_store_sqlite::SqliteStore;

    use super::Harness;

    async fn harness() -> Harness<SqliteStore> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
        Harness::new(store, folder)
    }

    helix_agents_testkit::runtime_suite!(harness);
}

mod postgres {
    use helix_agents_store_postgres::PostgresStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::Harness;

    async fn harness() -> Harness<PostgresStore> {
        let url = servers::postgres();
        let builder = PostgresStore::builder(&url).schema(servers::unique()).connections(4);
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone)
    }

    helix_agents_testkit::runtime_suite!(harness);
}

mod redis {
    use helix_agents_store_redis::RedisStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::Harness;

    async fn harness() -> Harness<RedisStore> {
        let builder = RedisStore::builder(&servers::redis()).prefix(servers::unique());
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone)
    }

    helix_agents_testkit::runtime_suite!(harness);
}
