//! Runs the store contract suites against `helix-agents-store-memory`.

mod chaos;
mod leases;

mod conformance {
    use std::sync::Arc;

    use helix_agents_conformance::store_suite::StoreHarness;
    use helix_agents_core::store::{StateStore, StoreScope};
    use helix_agents_store_memory::MemoryStore;

    pub(crate) struct Harness(MemoryStore);

    #[async_trait::async_trait]
    impl StoreHarness for Harness {
        fn scope(&self) -> StoreScope {
            StoreScope::Process
        }

        async fn open(&self) -> Arc<dyn StateStore> {
            Arc::new(self.0.clone())
        }

        async fn contains_bytes(&self, bytes: &[u8]) -> Option<bool> {
            // The debug output of the store contains all its data.
            let text = String::from_utf8_lossy(bytes);
            Some(format!("{:?}", self.0).contains(&*text))
        }
    }

    pub(crate) async fn harness() -> Harness {
        Harness(MemoryStore::new())
    }

    helix_agents_conformance::store_suite!(harness);
}

mod stream {
    use std::sync::Arc;

    use helix_agents_conformance::stream_suite::StreamHarness;
    use helix_agents_core::stream::StreamManager;
    use helix_agents_store_memory::{MemoryOptions, MemoryStore};

    pub(crate) struct Harness(MemoryStore);

    #[async_trait::async_trait]
    impl StreamHarness for Harness {
        async fn open(&self) -> Arc<dyn StreamManager> {
            Arc::new(self.0.clone())
        }

        async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
            Arc::new(MemoryStore::with_options(MemoryOptions::new().stream_retention(chunks)))
        }
    }

    pub(crate) async fn harness() -> Harness {
        Harness(MemoryStore::new())
    }

    helix_agents_conformance::stream_suite!(harness);
}

mod backend {
    use helix_agents_conformance::backend_suite::{Backend, BackendHarness};
    use helix_agents_store_memory::MemoryStore;

    struct Harness(MemoryStore);

    #[async_trait::async_trait]
    impl BackendHarness for Harness {
        async fn open(&self) -> Backend {
            Backend::of(self.0.clone())
        }
    }

    async fn harness() -> Harness {
        Harness(MemoryStore::new())
    }

    helix_agents_conformance::backend_suite!(harness);
}
