//! Acknowledged operations survive a killed writer.

use std::sync::Arc;

use helix_agents_conformance::durable_suite::DurableHarness;
use helix_agents_core::store::StateStore;
use helix_agents_store_postgres::PostgresStore;

use super::support::Database;

struct Harness(Database);

#[async_trait::async_trait]
impl DurableHarness for Harness {
    async fn open(place: &str) -> Arc<dyn StateStore> {
        let (url, schema) = place.split_once('\n').unwrap();
        let builder = PostgresStore::builder(url).schema(schema).connections(4);
        Arc::new(builder.open().await.unwrap())
    }

    fn place(&self) -> String {
        format!("{}\n{}", self.0.url, self.0.schema)
    }

    fn forces_writes(&self) -> bool {
        false
    }
}

async fn harness() -> Harness {
    Harness(Database::new())
}

helix_agents_conformance::durable_suite!(harness, Harness);
