//! Runs the store contract suites against `helix-agents-store-redis`, and tests what is specific to
//! a server.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod chaos;
mod cluster;
mod contention;
mod durable;
mod failover;
mod follow;
mod keys;
mod open;
mod outage;
mod proxy;
mod server;
mod support;
mod tags;
mod tls;

mod conformance {
    use std::sync::Arc;

    use helix_agents_conformance::store_suite::StoreHarness;
    use helix_agents_core::store::{StateStore, StoreScope};

    use super::support::Keyspace;

    #[async_trait::async_trait]
    impl StoreHarness for Keyspace {
        fn scope(&self) -> StoreScope {
            StoreScope::Network
        }

        async fn open(&self) -> Arc<dyn StateStore> {
            Arc::new(self.store().await)
        }

        async fn contains_bytes(&self, bytes: &[u8]) -> Option<bool> {
            Some(self.holds(bytes))
        }
    }

    pub(crate) async fn harness() -> Keyspace {
        Keyspace::new()
    }

    helix_agents_conformance::store_suite!(harness);
}

mod stream {
    use std::sync::Arc;

    use helix_agents_conformance::stream_suite::StreamHarness;
    use helix_agents_core::stream::StreamManager;

    use super::support::Keyspace;

    #[async_trait::async_trait]
    impl StreamHarness for Keyspace {
        async fn open(&self) -> Arc<dyn StreamManager> {
            Arc::new(self.store().await)
        }

        async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
            Arc::new(self.builder().stream_retention(chunks).open().await.unwrap())
        }
    }

    pub(crate) async fn harness() -> Keyspace {
        Keyspace::new()
    }

    helix_agents_conformance::stream_suite!(harness);
}

mod backend {
    use helix_agents_conformance::backend_suite::{Backend, BackendHarness};

    use super::support::Keyspace;

    #[async_trait::async_trait]
    impl BackendHarness for Keyspace {
        async fn open(&self) -> Backend {
            Backend::of(self.store().await)
        }
    }

    async fn harness() -> Keyspace {
        Keyspace::new()
    }

    helix_agents_conformance::backend_suite!(harness);
}
