//! What was acknowledged outlives a writer that is killed.

use std::sync::Arc;

use helix_agents_core::store::StateStore;
use helix_agents_store_redis::RedisStore;
use helix_agents_testkit::durable_suite::DurableHarness;
use helix_agents_testkit::servers;

use super::support::Corner;

#[async_trait::async_trait]
impl DurableHarness for Corner {
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

async fn harness() -> Corner {
    Corner::new()
}

helix_agents_testkit::durable_suite!(harness, Corner);
