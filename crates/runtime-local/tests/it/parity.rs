//! The parity suite, on the memory store and on SQLite.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_testkit::runtime_suite::{RuntimeHarness, World};
use tokio::runtime::Runtime;

/// A store, and the threads of the processes that were booted on it.
struct Harness<S> {
    store: S,
    /// The runs of each boot live on a tokio runtime of their own, which dies with its process.
    processes: Mutex<Vec<Runtime>>,
    // Kept so that the file lives as long as the store.
    _folder: Option<tempfile::TempDir>,
}

impl<S> Harness<S> {
    fn new(store: S, folder: Option<tempfile::TempDir>) -> Self {
        Self { store, processes: Mutex::default(), _folder: folder }
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
        let runtime = LocalRuntime::builder()
            .state_store(world.store.unwrap_or_else(|| self.store()))
            .stream_manager(self.streams())
            .llm_adapter(world.llm)
            .registry(world.registry)
            .durability(world.durability)
            .lease(world.lease)
            .grace(world.grace)
            .auto_resume(world.auto_resume)
            .tasks_on(process.handle().clone())
            .build()
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

mod memory {
    use helix_agents_store_memory::MemoryStore;

    use super::Harness;

    async fn harness() -> Harness<MemoryStore> {
        Harness::new(MemoryStore::default(), None)
    }

    helix_agents_testkit::runtime_suite!(harness);
}

mod sqlite {
    use helix_agents_store_sqlite::SqliteStore;

    use super::Harness;

    async fn harness() -> Harness<SqliteStore> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
        Harness::new(store, Some(folder))
    }

    helix_agents_testkit::runtime_suite!(harness);
}
