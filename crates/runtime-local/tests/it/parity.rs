//! The parity suite, on the stores without a server. The package `tests-e2e` runs it on the others.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_conformance::runtime_suite::processes::{
    Boot, ProcessConfig, Processes, StartedProcess,
};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;

type Harness<S> = Processes<S, Local>;

struct Local;

#[async_trait]
impl Boot for Local {
    async fn boot(&self, with: ProcessConfig) -> StartedProcess {
        let ProcessConfig { world, store, streams, tasks_on } = with;
        let runtime = LocalRuntime::builder()
            .state_store(store)
            .stream_manager(streams)
            .llm_adapter(world.llm)
            .registry(world.registry)
            .lease(world.lease)
            .grace(world.grace)
            .auto_resume(world.auto_resume)
            .observers(world.observers)
            .tasks_on(tasks_on)
            .build()
            .unwrap();
        StartedProcess { executor: Arc::new(runtime), worker: Box::new(()) }
    }
}

mod memory {
    use helix_agents_store_memory::MemoryStore;

    use super::{Harness, Local};

    async fn harness() -> Harness<MemoryStore> {
        Harness::new(MemoryStore::default(), (), Local)
    }

    helix_agents_conformance::runtime_suite!(harness);
}

mod sqlite {
    use helix_agents_store_sqlite::SqliteStore;

    use super::{Harness, Local};

    async fn harness() -> Harness<SqliteStore> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
        Harness::new(store, folder, Local)
    }

    helix_agents_conformance::runtime_suite!(harness);
}
