//! The background task that sweeps a store.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_conformance::faults::{Fault, FaultStore, LIST};
use helix_agents_core::error::ErrorCode;
use helix_agents_runtime::Sweeper;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, ScriptedLlm};

const INTERVAL: Duration = Duration::from_secs(5);

fn sweeper(store: &FaultStore) -> Sweeper {
    let runtime = LocalRuntime::builder().state_store(Arc::new(store.clone()));
    let runtime = runtime.stream_manager(Arc::new(MemoryStore::new())).llm(ScriptedLlm::new([]));
    Sweeper::start(Arc::new(runtime.build().unwrap()), INTERVAL)
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_is_repeated_after_the_interval() {
    let store = FaultStore::new(Arc::new(MemoryStore::new()));
    let next = Gate::opened();
    store.inject(LIST, Fault::Refuse(ErrorCode::StoreCorrupt));
    store.inject(LIST, Fault::HoldBefore(next.clone()));
    let sweeper = sweeper(&store);
    tokio::time::sleep(INTERVAL / 2).await;
    assert_eq!(next.arrived(), 0);
    tokio::time::sleep(INTERVAL).await;
    assert_eq!(next.arrived(), 1);
    sweeper.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_sweeper_stops() {
    let store = FaultStore::new(Arc::new(MemoryStore::new()));
    let (first, next) = (Gate::new(), Gate::opened());
    store.inject(LIST, Fault::HoldBefore(first.clone()));
    store.inject(LIST, Fault::HoldBefore(next.clone()));
    let sweeper = sweeper(&store);
    first.reached().await;
    drop(sweeper);
    first.open();
    tokio::time::sleep(INTERVAL * 10).await;
    assert_eq!(next.arrived(), 0);
}
