//! Tests of how a handle treats an engine that reports a run as stopped: the log takes precedence.

use std::pin::pin;

use futures_util::FutureExt as _;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::session::RunStatus;
use helix_agents_runtime::WorkItem;
use helix_agents_test::{Gate, within};

use crate::by_hand::{ByHand, S, Scene, teller, teller_model};

/// Returns a scene whose engine reports every run as stopped once it passes the gate.
fn scene(gate: &Gate) -> Scene {
    let engine = ByHand { stopped: Some(gate.clone()), ..ByHand::default() };
    Scene::new(engine, teller_model(), [teller()])
}

#[tokio::test(start_paused = true)]
async fn a_handle_of_an_abandoned_run_returns_the_error_of_the_engine() {
    let scene = scene(&Gate::opened());
    let (handle, run) = scene.start(teller()).await;
    scene.abandon(&run).await;
    let error = within(handle.result()).await.unwrap_err();
    assert_eq!(error.message(), "as the engine says");
}

/// The owner of the lease may be slow to report progress.
#[tokio::test(start_paused = true)]
async fn the_engine_is_not_queried_while_the_run_is_leased() {
    let gate = Gate::opened();
    let scene = scene(&gate);
    let (handle, run) = scene.start(teller()).await;
    let (result, ()) = tokio::join!(within(handle.result()), scene.drive(&run));
    assert_eq!(result.unwrap().status, RunStatus::Completed);
    assert_eq!(gate.arrived(), 0);
}

/// The engine reports the superseded run, which it stopped because of the takeover.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_taken_over_while_its_engine_answers_is_superseded() {
    let gate = Gate::new();
    let scene = scene(&gate);
    let (handle, run) = scene.start(teller()).await;
    scene.abandon(&run).await;
    let taken_over = async {
        gate.reached().await;
        scene.resume(teller()).await;
        gate.open();
    };
    let (result, ()) = tokio::join!(within(handle.result()), taken_over);
    assert_eq!(result.unwrap_err().code(), ErrorCode::Superseded);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_while_its_engine_answers_has_ended() {
    let gate = Gate::new();
    let scene = scene(&gate);
    let (handle, run) = scene.start(teller()).await;
    scene.abandon(&run).await;
    let ended = async {
        gate.reached().await;
        scene.drive(&run).await;
        gate.open();
    };
    let (result, ()) = tokio::join!(within(handle.result()), ended);
    assert_eq!(result.unwrap().status, RunStatus::Completed);
}

/// For example by a slow worker that was considered dead.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_adopted_while_its_engine_answers_continues() {
    let gate = Gate::new();
    let scene = scene(&gate);
    let (handle, run) = scene.start(teller()).await;
    scene.abandon(&run).await;
    let mut result = pin!(within(handle.result()));
    assert!(result.as_mut().now_or_never().is_none(), "the engine has not answered");
    scene.runtime.perform(&run, &WorkItem::Open, true).await.unwrap();
    assert!(scene.head(&S.into()).await.is_leased());
    gate.open();
    assert!(result.as_mut().now_or_never().is_none(), "a worker has the lease");
    let (result, ()) = tokio::join!(result, scene.drive(&run));
    assert_eq!(result.unwrap().status, RunStatus::Completed);
}
