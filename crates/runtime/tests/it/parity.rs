//! The parity suite.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_runtime::Settings;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::runtime_suite::{RuntimeHarness, World};
use helix_agents_testkit::trees::Again;
use tokio::runtime::Runtime;

use crate::in_parts::InParts;

/// A store, and the threads of the processes that were booted on it.
#[derive(Default)]
struct Harness {
    store: MemoryStore,
    /// The runs of each boot live on a tokio runtime of their own, which dies with its process.
    processes: Mutex<Vec<Runtime>>,
}

impl Drop for Harness {
    fn drop(&mut self) {
        for process in self.processes.lock().unwrap().drain(..) {
            process.shutdown_background();
        }
    }
}

#[async_trait]
impl RuntimeHarness for Harness {
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
        let settings = Settings {
            store: Some(world.store.unwrap_or_else(|| self.store())),
            streams: Some(self.streams()),
            llm: Some(world.llm),
            registry: world.registry,
            lease: world.lease,
            grace: world.grace,
            auto_resume: world.auto_resume,
            tasks_on: Some(process.handle().clone()),
            ..Settings::default()
        };
        let runtime = InParts::new(settings, Again::Never);
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

async fn harness() -> Harness {
    Harness::default()
}

helix_agents_testkit::runtime_suite!(harness);
