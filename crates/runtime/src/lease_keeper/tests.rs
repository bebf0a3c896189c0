//! A lease counts from the time at which the request that started, read or renewed it was sent.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use helix_agents_conformance::faults::{Fault, FaultStore, HEAD};
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::store::StateStore as _;
use helix_agents_test::Gate;
use tokio::sync::Notify;
use tokio::time::advance;

use super::{LeaseEvent, LeaseKeeper};
use crate::cancel_reason::CancelReason;
use crate::testing::{LEASE, SESSION, Scene, store};

/// The delay of each response of the store.
const ANSWER: Duration = Duration::from_secs(5);

fn agent() -> AnyAgent {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    agent.build().unwrap().erased()
}

/// Returns a scene on this store.
fn on(store: FaultStore) -> Scene {
    Scene::new(store, [])
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_new_session_is_counted_from_the_sending() {
    let gate = Gate::new();
    let scene = on(store().with_fault("run_started", Fault::HoldAfter(gate.clone())));
    let slow = async {
        gate.reached().await;
        advance(ANSWER).await;
        gate.open();
    };
    let agent = agent();
    let (started, ()) = tokio::join!(scene.begin(&agent), slow);
    assert_eq!(started.lease.view().age(), ANSWER);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_run_that_takes_over_is_counted_from_the_sending() {
    let (scene, gate, agent) = (on(store()), Gate::new(), agent());
    scene.begin(&agent).await.lease.release().await;
    scene.store.inject("run_started", Fault::HoldAfter(gate.clone()));
    let slow = async {
        gate.reached().await;
        advance(ANSWER).await;
        gate.open();
    };
    let (started, ()) = tokio::join!(scene.resume(&agent), slow);
    assert_eq!(started.lease.view().age(), ANSWER);
}

/// The response of the store contains the remaining time of the lease and is delayed.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_read_is_counted_from_the_question() {
    let (scene, gate) = (on(store()), Gate::new());
    let of = scene.begin(&agent()).await.in_work_items();
    scene.store.inject(HEAD, Fault::HoldAfter(gate.clone()));
    let mut attached = pin!(LeaseKeeper::attach(scene.runtime.context(), &of));
    assert!(attached.as_mut().now_or_never().is_none());
    advance(ANSWER).await;
    gate.open();
    let (_, keeper) = attached.await.unwrap().unwrap();
    let age = keeper.view().age();
    assert!(age >= ANSWER && age < LEASE / 2, "{age:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_first_is_counted_from_the_sending() {
    let gate = Gate::new();
    let plain = store();
    let scene = on(plain.clone().hold_renewals(&gate));
    let of = scene.begin(&agent()).await.in_work_items();
    // The lease is about to expire.
    assert!(plain.renew(&of.session, &of.run, LEASE / 4).await.unwrap().renewed);
    let mut attached = pin!(LeaseKeeper::attach(scene.runtime.context(), &of));
    assert!(attached.as_mut().now_or_never().is_none());
    assert_eq!(gate.arrived(), 1);
    advance(ANSWER).await;
    gate.open();
    let (_, keeper) = attached.await.unwrap().unwrap();
    assert_eq!(keeper.view().age(), ANSWER);
}

/// After a pause, the result of an effect may arrive together with the response of a renewal. The effect is polled
/// although its wakeup came while the lease was at risk.
#[tokio::test(start_paused = true)]
async fn an_effect_that_was_skipped_is_polled_after_the_renewal() {
    let (plain, gate, agent) = (store(), Gate::new(), agent());
    let scene = on(plain.clone().hold_renewals(&gate));
    let mut lease = scene.begin(&agent).await.lease;
    let arrived = Notify::new();
    let effect = pin!(arrived.notified());
    let mut watched = pin!(lease.watch_while(0, effect));
    assert!(watched.as_mut().now_or_never().is_none());
    advance(LEASE / 3).await;
    assert!(watched.as_mut().now_or_never().is_none());
    assert_eq!(gate.arrived(), 1, "the renewal was sent");
    advance(LEASE / 3 + ANSWER).await;
    gate.open();
    arrived.notify_one();
    let done = watched.as_mut().now_or_never();
    assert!(matches!(done, Some(Either::Left(()))), "{done:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_session_was_deleted_stops_at_the_next_renewal() {
    let (scene, agent) = (on(store()), agent());
    let mut lease = scene.begin(&agent).await.lease;
    assert!(scene.store.delete(&SESSION.into()).await.unwrap());
    let event = lease.watch(0).await;
    assert!(matches!(event, LeaseEvent::Cancel(CancelReason::SessionDeleted)), "{event:?}");
    assert!(lease.view().age() < LEASE / 2, "{:?}", lease.view().age());
}
