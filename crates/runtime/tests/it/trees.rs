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
use helix_agents_runtime::Settings;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::trees::{Booted, Open, Process, Redelivery, Stores, run_all};

use crate::in_work_items::in_work_items;

/// The number of scenarios in CI.
const SEEDS: u64 = 600;

/// The number of scenarios with repeated work items.
const REPEATED: u64 = 150;

/// The number of scenarios on a bad network.
const DISTURBED: u64 = 100;

fn boot(process: Process, redelivery: Redelivery) -> BoxFuture<'static, Booted> {
    let settings = Settings {
        store: Some(process.store),
        streams: Some(process.streams),
        llm: Some(process.llm),
        registry: AgentRegistry::clone(&process.registry),
        lease: Duration::from_secs(30),
        grace: Duration::from_millis(100),
        ids: process.ids,
        ..Settings::default()
    };
    let runtime = Arc::new(in_work_items(settings, redelivery));
    let sweeper = Arc::clone(&runtime);
    let sweep = move || {
        let runtime = Arc::clone(&sweeper);
        async move { runtime.sweep().await.map(drop) }.boxed()
    };
    let sweep = Arc::new(sweep);
    ready(Booted { executor: runtime, sweep, redelivery, misses: Duration::ZERO }).boxed()
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
    run_all(SEEDS, &in_memory, &|process| boot(process, Redelivery::Never));
}

/// Every third operation is delayed, lost, executed without a response, or executed twice.
#[test]
fn with_lost_and_doubled_requests_a_tree_ends_and_its_logs_agree() {
    run_all(DISTURBED, &in_memory, &|process: Process| {
        let store = Arc::new(ChaosStore::new(Arc::clone(&process.store), 1));
        boot(Process { store, ..process }, Redelivery::Never)
    });
}

/// One in three work items is executed again because its result was lost.
#[test]
fn with_lost_results_a_tree_ends_and_its_logs_agree() {
    run_all(REPEATED, &in_memory, &|process| boot(process, Redelivery::Later));
}

/// One in three work items is executed by two workers concurrently, because one of them was considered dead.
#[test]
fn with_duplicate_workers_a_tree_ends_and_its_logs_agree() {
    run_all(REPEATED, &in_memory, &|process| boot(process, Redelivery::AtOnce));
}
