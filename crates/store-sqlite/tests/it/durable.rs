//! Acknowledged operations survive a killed writer and were synced to the disk.

use std::sync::Arc;

use helix_agents_conformance::durable_suite::DurableHarness;
use helix_agents_core::store::StateStore;
use helix_agents_store_sqlite::SqliteStore;

use super::support::Folder;

struct Harness(Folder);

#[async_trait::async_trait]
impl DurableHarness for Harness {
    async fn open(place: &str) -> Arc<dyn StateStore> {
        Arc::new(SqliteStore::open(place).await.unwrap())
    }

    fn place(&self) -> String {
        place(&self.0)
    }

    fn forces_writes(&self) -> bool {
        true
    }
}

pub(crate) fn place(folder: &Folder) -> String {
    folder.file().to_str().unwrap().to_owned()
}

async fn harness() -> Harness {
    Harness(Folder::new())
}

helix_agents_conformance::durable_suite!(harness, Harness);
