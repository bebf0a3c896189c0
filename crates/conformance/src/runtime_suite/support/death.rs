//! Helpers for crashes of processes.

use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::executor::RunHandle;
use helix_agents_core::store::{Page, SessionFilter};
use helix_agents_test::Gate;

use super::start_run;
use crate::runtime_suite::{RuntimeHarness, World};

/// Starts a run in a process that is killed when a caller waits at the gate. The gate is open for later
/// callers.
pub(in crate::runtime_suite) async fn killed_at<O>(
    harness: &impl RuntimeHarness,
    world: World,
    agent: &Agent<O>,
    gate: &Gate,
) -> RunHandle {
    let executor = harness.boot(world).await;
    let handle = start_run(&*executor, agent, "go").await;
    gate.reached().await;
    all_crashed(harness).await;
    gate.open();
    handle
}

/// Kills all booted processes and expires their leases, as if the crash were long ago.
///
/// So their leases can be long, and a slow machine loses none of them while they live.
pub(in crate::runtime_suite) async fn all_crashed(harness: &impl RuntimeHarness) {
    harness.kill().await;
    expire_leases(harness).await;
}

/// Expires the leases of all owners.
pub(in crate::runtime_suite) async fn expire_leases(harness: &impl RuntimeHarness) {
    let store = harness.store();
    let heads = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    for head in heads.iter().filter(|head| head.is_leased()) {
        let run = head.summary.run.as_ref().unwrap();
        store.renew(&head.session, run, Duration::ZERO).await.unwrap();
    }
}
