//! The parity suite, on every store that other processes see.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_testkit::runtime_suite::{RuntimeHarness, World};
use tokio::runtime::Runtime;

use crate::support::Corner;

/// A store, a corner of DBOS's tables, and the threads of the processes that were booted on them.
struct Harness<S> {
    store: S,
    corner: Corner,
    /// The workflows of each boot live on a tokio runtime of their own, which dies with its process.
    processes: Mutex<Vec<Runtime>>,
    // Dropped after all else: what the store needs, and what removes what is left of it.
    _place: Box<dyn Any + Send + Sync>,
}

impl<S> Harness<S> {
    fn new(store: S, place: impl Any + Send + Sync) -> Self {
        let (corner, processes) = (Corner::new(), Mutex::default());
        Self { store, corner, processes, _place: Box::new(place) }
    }
}

impl<S> Drop for Harness<S> {
    fn drop(&mut self) {
        for process in self.processes.lock().unwrap().drain(..) {
            process.shutdown_background();
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
        let process =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let process = process.unwrap();
        let builder = self.corner.builder();
        let runtime = builder
            .state_store(world.store.unwrap_or_else(|| self.store()))
            .stream_manager(self.streams())
            .llm_adapter(world.llm)
            .registry(world.registry)
            .lease(world.lease)
            .grace(world.grace)
            .auto_resume(world.auto_resume)
            .tasks_on(process.handle().clone())
            .connect()
            .await
            .unwrap();
        self.processes.lock().unwrap().push(process);
        Arc::new(runtime)
    }

    async fn kill(&self) {
        let processes: Vec<_> = self.processes.lock().unwrap().drain(..).collect();
        // Waits until the threads have stopped: a killed process does nothing any more.
        let stop = move || {
            for process in processes {
                process.shutdown_timeout(Duration::from_secs(60));
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
