//! Runs the store contract suites against `helix-agents-store-postgres`, and tests what is specific
//! to a server.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod chaos;
mod contention;
mod cost;
mod damage;
mod durable;
mod groups;
mod open;
mod outage;
mod pooler;
mod process;
mod proxy;
mod purge;
mod server;
mod support;
mod tags;
mod tls;

mod conformance {
    use std::sync::Arc;

    use helix_agents_conformance::store_suite::StoreHarness;
    use helix_agents_core::store::{StateStore, StoreScope};

    use super::support::Database;

    pub(crate) struct Harness(Database);

    #[async_trait::async_trait]
    impl StoreHarness for Harness {
        fn scope(&self) -> StoreScope {
            StoreScope::Network
        }

        async fn open(&self) -> Arc<dyn StateStore> {
            Arc::new(self.0.open().await)
        }

        async fn contains_bytes(&self, bytes: &[u8]) -> Option<bool> {
            Some(self.0.contains_bytes(bytes).await)
        }
    }

    pub(crate) async fn harness() -> Harness {
        Harness(Database::new())
    }

    helix_agents_conformance::store_suite!(harness);
}

mod stream {
    use std::sync::Arc;

    use helix_agents_conformance::stream_suite::StreamHarness;
    use helix_agents_core::stream::StreamManager;

    use super::support::Database;

    pub(crate) struct Harness(Database);

    #[async_trait::async_trait]
    impl StreamHarness for Harness {
        async fn open(&self) -> Arc<dyn StreamManager> {
            Arc::new(self.0.open().await)
        }

        async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
            Arc::new(self.0.builder().stream_retention(chunks).open().await.unwrap())
        }
    }

    pub(crate) async fn harness() -> Harness {
        Harness(Database::new())
    }

    helix_agents_conformance::stream_suite!(harness);
}

mod backend {
    use helix_agents_conformance::backend_suite::{Backend, BackendHarness};

    use super::support::Database;

    struct Harness(Database);

    #[async_trait::async_trait]
    impl BackendHarness for Harness {
        async fn open(&self) -> Backend {
            Backend::of(self.0.open().await)
        }
    }

    async fn harness() -> Harness {
        Harness(Database::new())
    }

    helix_agents_conformance::backend_suite!(harness);
}
