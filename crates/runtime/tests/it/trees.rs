//! Random trees of agents, whose processes die at random.
//!
//! `HELIX_SEED=N` tells one story again, with `HELIX_MOVES=N` only its beginning; `HELIX_SEEDS=N`
//! tells the first N.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::executor::AgentExecutor as _;
use helix_agents_runtime::Settings;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::chaos::ChaosStore;
use helix_agents_testkit::trees::{Booted, Open, Process, Stores, tell_all};

use crate::in_parts::InParts;

/// How many stories are told in CI.
const SEEDS: u64 = 900;

/// How many of them on a bad network.
const DISTURBED: u64 = 100;

fn boot(process: Process) -> Booted {
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
    let runtime = Arc::new(InParts::new(settings));
    let sweeper = Arc::clone(&runtime);
    let sweep = move || {
        let runtime = Arc::clone(&sweeper);
        async move { runtime.sweep().await.map(drop) }.boxed()
    };
    Booted { executor: runtime, sweep: Arc::new(sweep) }
}

fn in_memory() -> Box<Open> {
    let store = MemoryStore::new();
    Box::new(move || {
        let (state, streams) = (Arc::new(store.clone()), Arc::new(store.clone()));
        async move { Stores { state, streams } }.boxed()
    })
}

#[test]
fn whatever_happens_a_tree_ends_and_its_logs_agree() {
    tell_all(SEEDS, &in_memory, &boot);
}

/// Every third operation is late, lost, unanswered or done twice.
#[test]
fn on_a_bad_network_a_tree_ends_and_its_logs_agree() {
    tell_all(DISTURBED, &in_memory, &|process: Process| {
        let store = Arc::new(ChaosStore::new(Arc::clone(&process.store), 1));
        boot(Process { store, ..process })
    });
}
