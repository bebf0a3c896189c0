//! Processes that die.

use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::executor::RunHandle;
use helix_agents_core::store::{Page, SessionFilter};

use super::begin;
use crate::gate::Gate;
use crate::runtime_suite::{RuntimeHarness, World};

/// Begins the story in a process that is killed when somebody stands at the gate, which is open for
/// those that come later.
pub(in crate::runtime_suite) async fn killed_at<S, O>(
    harness: &impl RuntimeHarness,
    world: World,
    agent: &Agent<S, O>,
    gate: &Gate,
) -> RunHandle {
    let executor = harness.boot(world).await;
    let handle = begin(&*executor, agent, "go").await;
    gate.reached().await;
    all_dead(harness).await;
    gate.open();
    handle
}

/// Kills what was booted, some time ago: no dead owner counts as alive any more.
///
/// So their leases can be long, and a slow machine loses none of them while they live.
pub(in crate::runtime_suite) async fn all_dead(harness: &impl RuntimeHarness) {
    harness.kill().await;
    leases_run_out(harness).await;
}

/// No owner counts as alive any more.
pub(in crate::runtime_suite) async fn leases_run_out(harness: &impl RuntimeHarness) {
    let store = harness.store();
    let heads = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    for head in heads.iter().filter(|head| head.is_leased()) {
        let run = head.summary.run.as_ref().unwrap();
        store.renew(&head.session, run, Duration::ZERO).await.unwrap();
    }
}
