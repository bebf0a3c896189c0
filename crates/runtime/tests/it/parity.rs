//! The parity suite with an engine of work items.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_conformance::runtime_suite::processes::{
    Boot, ProcessConfig, Processes, StartedProcess,
};
use helix_agents_runtime::Settings;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::trees::Redelivery;

use crate::in_work_items::in_work_items;

/// Boots a runtime that executes each work item once.
struct Once;

#[async_trait]
impl Boot for Once {
    async fn boot(&self, with: ProcessConfig) -> StartedProcess {
        let ProcessConfig { world, store, streams, tasks_on } = with;
        let settings = Settings {
            store: Some(store),
            streams: Some(streams),
            llm: Some(world.llm),
            registry: world.registry,
            lease: world.lease,
            grace: world.grace,
            auto_resume: world.auto_resume,
            observers: world.observers,
            tasks_on: Some(tasks_on),
            ..Settings::default()
        };
        let runtime = in_work_items(settings, Redelivery::Never);
        StartedProcess { executor: Arc::new(runtime), worker: Box::new(()) }
    }
}

async fn harness() -> Processes<MemoryStore, Once> {
    Processes::new(MemoryStore::default(), (), Once)
}

helix_agents_conformance::runtime_suite!(harness);
