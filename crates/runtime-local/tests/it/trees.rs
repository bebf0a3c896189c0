//! Random trees of agents whose processes crash at random.
//!
//! `HELIX_SEED=N` replays one scenario, with `HELIX_MOVES=N` only its first N moves; `HELIX_SEEDS=N` runs the first N
//! scenarios.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use helix_agents_conformance::chaos::ChaosStore;
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::executor::AgentExecutor as _;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::trees::{Booted, Open, Process, Redelivery, Stores, run_all};

/// The number of scenarios in CI.
const SEEDS: u64 = 2_000;

/// The number of scenarios on a bad network.
const DISTURBED: u64 = 200;

fn boot(process: Process) -> BoxFuture<'static, Booted> {
    let runtime = LocalRuntime::builder()
        .state_store(process.store)
        .stream_manager(process.streams)
        .llm_adapter(process.llm)
        .registry(AgentRegistry::clone(&process.registry))
        .durability(process.durability)
        .lease(Duration::from_secs(30))
        .grace(Duration::from_millis(100));
    let runtime = match process.ids {
        Some(ids) => runtime.ids(ids),
        None => runtime,
    };
    let runtime = runtime.build().unwrap();
    let sweeper = runtime.clone();
    let sweep = move || {
        let runtime = sweeper.clone();
        async move { runtime.sweep().await.map(drop) }.boxed()
    };
    let booted = Booted {
        executor: Arc::new(runtime),
        sweep: Arc::new(sweep),
        redelivery: Redelivery::Never,
        misses: Duration::ZERO,
    };
    ready(booted).boxed()
}

fn in_memory() -> Box<Open> {
    let store = MemoryStore::new();
    Box::new(move || {
        let (state, streams) = (Arc::new(store.clone()), Arc::new(store.clone()));
        async move { Stores { state, streams } }.boxed()
    })
}

#[test]
fn with_random_faults_a_tree_ends_and_its_logs_agree() {
    run_all(SEEDS, &in_memory, &boot);
}

/// Every third operation is delayed, lost, executed without a response, or executed twice.
#[test]
fn with_lost_and_doubled_requests_a_tree_ends_and_its_logs_agree() {
    run_all(DISTURBED, &in_memory, &|process: Process| {
        let store = Arc::new(ChaosStore::new(Arc::clone(&process.store), 1));
        boot(Process { store, ..process })
    });
}
