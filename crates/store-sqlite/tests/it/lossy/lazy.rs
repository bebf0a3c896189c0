//! A store that does not sync its file. The durability suite must detect it.

use std::panic::catch_unwind;
use std::sync::Arc;

use helix_agents_conformance::durable_suite::{
    self, DurableHarness, acknowledged_writes_were_forced_to_the_disk,
};
use helix_agents_conformance::scenario;
use helix_agents_core::store::StateStore;
use helix_agents_store_sqlite::{SqliteStore, Synchronous};

use crate::durable::place;
use crate::support::Folder;

struct Lazy(Folder);

#[async_trait::async_trait]
impl DurableHarness for Lazy {
    async fn open(place: &str) -> Arc<dyn StateStore> {
        let builder = SqliteStore::builder(place).synchronous(Synchronous::Normal);
        Arc::new(builder.open().await.unwrap())
    }

    fn place(&self) -> String {
        place(&self.0)
    }

    fn forces_writes(&self) -> bool {
        true
    }
}

#[test]
fn writer() {
    durable_suite::write::<Lazy>();
}

#[test]
fn an_acknowledgement_without_a_sync_is_detected() {
    let detected = catch_unwind(|| {
        scenario::run("lazy", async || {
            let writer = concat!(module_path!(), "::writer");
            acknowledged_writes_were_forced_to_the_disk(&Lazy(Folder::new()), writer).await;
        });
    });
    assert!(detected.is_err());
}
