//! Acknowledged operations survive a killed writer.

use std::sync::Arc;

use helix_agents_conformance::durable_suite::DurableHarness;
use helix_agents_core::store::StateStore;
use helix_agents_store_redis::RedisStore;
use helix_agents_testkit::servers;

use super::support::Keyspace;

#[async_trait::async_trait]
impl DurableHarness for Keyspace {
    async fn open(place: &str) -> Arc<dyn StateStore> {
        let store = RedisStore::builder(&servers::redis()).prefix(place).open().await;
        Arc::new(store.unwrap())
    }

    fn place(&self) -> String {
        self.prefix().to_owned()
    }

    fn forces_writes(&self) -> bool {
        false
    }
}

async fn harness() -> Keyspace {
    Keyspace::new()
}

helix_agents_conformance::durable_suite!(harness, Keyspace);
