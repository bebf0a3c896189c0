//! The guarantees that a runtime reports.

use std::time::Duration;

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::session::Durability;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_store_sqlite::SqliteStore;

fn one(guarantees: &[Guarantee], promise: GuaranteeKind) -> &Guarantee {
    guarantees.iter().find(|guarantee| guarantee.promise == promise).unwrap()
}

#[test]
fn a_runtime_reports_every_guarantee() {
    let guarantees = LocalRuntime::builder().guarantees();
    let promises: Vec<_> = guarantees.iter().map(|guarantee| guarantee.promise).collect();
    assert_eq!(promises, GuaranteeKind::OF_RUNTIMES);
}

#[test]
fn crash_losses_depend_on_the_durability() {
    for (durability, holds) in [(Durability::PerEffect, true), (Durability::PerStep, false)] {
        let guarantees = LocalRuntime::builder().durability(durability).guarantees();
        let losses = one(&guarantees, GuaranteeKind::LosesNoFinishedEffect);
        assert_eq!(losses.holds, holds);
        assert!(losses.reason.contains(&format!("{durability:?}")), "{losses:?}");
    }
}

#[tokio::test]
async fn a_takeover_needs_a_shared_store() {
    let builder = || LocalRuntime::builder().lease(Duration::from_millis(2500));
    let alone = builder().store(MemoryStore::new()).guarantees();
    assert!(!one(&alone, GuaranteeKind::TakenOver).holds);

    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("helix.db")).await.unwrap();
    let shared = builder().store(store).guarantees();
    let takeover = one(&shared, GuaranteeKind::TakenOver);
    assert!(takeover.holds && takeover.reason.contains("2.5 s"), "{takeover:?}");
}
