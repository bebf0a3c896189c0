//! Runs the store contract suites against `helix-agents-store-sqlite`, and tests what is specific
//! to a file.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod chaos;
mod close;
mod damage;
mod durable;
mod fork;
mod inspect;
mod lossy;
mod open;
mod process;
mod support;

mod conformance {
    use std::sync::Arc;

    use helix_agents_conformance::store_suite::StoreHarness;
    use helix_agents_core::store::{StateStore, StoreScope};
    use helix_agents_store_sqlite::SqliteStore;

    use super::support::Folder;

    pub(crate) struct Harness(Folder);

    #[async_trait::async_trait]
    impl StoreHarness for Harness {
        fn scope(&self) -> StoreScope {
            StoreScope::Machine
        }

        async fn open(&self) -> Arc<dyn StateStore> {
            Arc::new(SqliteStore::open(self.0.file()).await.unwrap())
        }

        async fn contains_bytes(&self, bytes: &[u8]) -> Option<bool> {
            Some(self.0.contains_bytes(bytes))
        }
    }

    pub(crate) async fn harness() -> Harness {
        Harness(Folder::new())
    }

    helix_agents_conformance::store_suite!(harness);
}

mod stream {
    use std::sync::Arc;

    use helix_agents_conformance::stream_suite::StreamHarness;
    use helix_agents_core::stream::StreamManager;
    use helix_agents_store_sqlite::SqliteStore;

    use super::support::Folder;

    pub(crate) struct Harness(Folder);

    #[async_trait::async_trait]
    impl StreamHarness for Harness {
        async fn open(&self) -> Arc<dyn StreamManager> {
            Arc::new(SqliteStore::open(self.0.file()).await.unwrap())
        }

        async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
            let builder = SqliteStore::builder(self.0.file()).stream_retention(chunks);
            Arc::new(builder.open().await.unwrap())
        }
    }

    pub(crate) async fn harness() -> Harness {
        Harness(Folder::new())
    }

    helix_agents_conformance::stream_suite!(harness);
}

mod backend {
    use helix_agents_conformance::backend_suite::{Backend, BackendHarness};

    use super::support::Folder;

    #[async_trait::async_trait]
    impl BackendHarness for Folder {
        async fn open(&self) -> Backend {
            Backend::of(Self::open(self).await)
        }
    }

    async fn harness() -> Folder {
        Folder::new()
    }

    helix_agents_conformance::backend_suite!(harness);
}
