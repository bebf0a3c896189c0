//! What a handle makes of an engine that says a run was stopped: the log goes before that.

use std::pin::pin;

use futures_util::FutureExt as _;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::session::RunStatus;
use helix_agents_runtime::WorkItem;
use helix_agents_testkit::gate::{Gate, within};

use crate::by_hand::{ByHand, S, Scene, teller, tells};

/// An engine that says so of every run, if it may pass the gate.
fn scene(gate: &Gate) -> Scene {
    let engine = ByHand { stopped: Some(gate.clone()), ..ByHand::default() };
    Scene::new(engine, tells(), [teller()])
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_run_that_lies_is_told_what_the_engine_says() {
    let scene = scene(&Gate::opened());
    let (handle, run) = scene.begin(teller()).await;
    scene.abandon(&run).await;
    let error = within(handle.result()).await.unwrap_err();
    assert_eq!(error.message(), "as the engine says");
}

/// Whoever has the lease may be slow to tell that it goes on.
#[tokio::test(start_paused = true)]
async fn an_engine_is_not_asked_while_somebody_has_the_lease() {
    let gate = Gate::opened();
    let scene = scene(&gate);
    let (handle, run) = scene.begin(teller()).await;
    let (told, ()) = tokio::join!(within(handle.result()), scene.drive(&run));
    assert_eq!(told.unwrap().status, RunStatus::Completed);
    assert_eq!(gate.arrived(), 0);
}

/// The engine speaks of the run that was taken over, which it stopped for that.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_taken_over_while_its_engine_answers_is_superseded() {
    let gate = Gate::new();
    let scene = scene(&gate);
    let (handle, run) = scene.begin(teller()).await;
    scene.abandon(&run).await;
    let taken_over = async {
        gate.reached().await;
        scene.resume(teller()).await;
        gate.open();
    };
    let (told, ()) = tokio::join!(within(handle.result()), taken_over);
    assert_eq!(told.unwrap_err().code(), ErrorCode::Superseded);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_while_its_engine_answers_has_ended() {
    let gate = Gate::new();
    let scene = scene(&gate);
    let (handle, run) = scene.begin(teller()).await;
    scene.abandon(&run).await;
    let ended = async {
        gate.reached().await;
        scene.drive(&run).await;
        gate.open();
    };
    let (told, ()) = tokio::join!(within(handle.result()), ended);
    assert_eq!(told.unwrap().status, RunStatus::Completed);
}

/// Somebody who was slow, and not dead, say.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_taken_up_while_its_engine_answers_goes_on() {
    let gate = Gate::new();
    let scene = scene(&gate);
    let (handle, run) = scene.begin(teller()).await;
    scene.abandon(&run).await;
    let mut told = pin!(within(handle.result()));
    assert!(told.as_mut().now_or_never().is_none(), "the engine has not answered");
    scene.runtime.perform(&run, &WorkItem::Open, true).await.unwrap();
    assert!(scene.head(&S.into()).await.is_leased());
    gate.open();
    assert!(told.as_mut().now_or_never().is_none(), "somebody has the lease");
    let (told, ()) = tokio::join!(told, scene.drive(&run));
    assert_eq!(told.unwrap().status, RunStatus::Completed);
}
