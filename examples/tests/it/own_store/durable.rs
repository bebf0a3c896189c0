//! Acknowledged operations survive a killed writer and were synced to the disk.

use std::sync::Arc;

use helix_agents::store::StateStore;
use helix_agents_conformance::durable_suite::DurableHarness;
use helix_agents_examples::own_store::FileStore;
use tempfile::TempDir;

struct Harness(TempDir);

#[async_trait::async_trait]
impl DurableHarness for Harness {
    async fn open(place: &str) -> Arc<dyn StateStore> {
        Arc::new(FileStore::open(place).await.unwrap())
    }

    fn place(&self) -> String {
        self.0.path().join("sessions.log").to_str().unwrap().to_owned()
    }

    fn forces_writes(&self) -> bool {
        true
    }
}

async fn harness() -> Harness {
    Harness(tempfile::tempdir().unwrap())
}

helix_agents_conformance::durable_suite!(harness, Harness);
