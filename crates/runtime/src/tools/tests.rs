//! Tests of call starts and of extreme timeouts.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::event::{Event, ToolOutcome};
use helix_agents_core::step::Action;
use helix_agents_core::tool::{EffectClass, Tool};
use helix_agents_test::Reply;
use serde_json::json;
use tokio::time::advance;
use tokio_util::sync::CancellationToken;

use super::CallRun;
use crate::engine::StartedRun;
use crate::lease_view::MAX_START_WINDOW;
use crate::start_queue::StartQueue;
use crate::testing::{LEASE, Scene, store};

/// Returns a tool that counts its executions.
fn pay(payments: &Arc<AtomicUsize>) -> Tool {
    let payments = Arc::clone(payments);
    Tool::dynamic("pay", "Pays.", json!({"type": "object"}), move |input, _| {
        payments.fetch_add(1, Ordering::Relaxed);
        async { Ok(input) }
    })
}

/// Returns an agent with this tool, and a scene whose model calls it once.
fn payer(tool: Tool) -> (AnyAgent, Scene) {
    let agent = Agent::builder("payer").system_prompt("You pay.").model("scripted").tool(tool);
    let scene = Scene::new(store(), [Reply::tool_call("pay", json!({}))]);
    (agent.build().unwrap().erased(), scene)
}

/// Returns the next call to run.
fn next_call(run: &StartedRun) -> (CallRun, StartQueue) {
    let Action::RunTools { calls, .. } = run.driver.next().unwrap() else {
        panic!("no call is to run")
    };
    let cancel = CancellationToken::new();
    let (mut runs, starts) = run.driver.calls(&run.lease, &calls, &cancel);
    (runs.pop().unwrap(), starts)
}

/// Makes the model call of a run that was just started, and returns the tool call that it requests.
async fn first_call(run: &mut StartedRun) -> (CallRun, StartQueue) {
    run.driver.call_model(&mut run.lease, 1, false).await.unwrap();
    next_call(run)
}

#[tokio::test(start_paused = true)]
async fn an_at_most_once_call_starts_with_half_of_the_lease_left() {
    let payments = Arc::default();
    let (agent, scene) = payer(pay(&payments).effect(EffectClass::AtMostOnce));
    let mut run = scene.begin(&agent).await;
    let (call, starts) = first_call(&mut run).await;
    let mut call = pin!(call.drive());
    assert!(call.as_mut().now_or_never().is_none());
    // The append that records the start takes a long time, and no renewal succeeds.
    advance(LEASE * 55 / 100).await;
    starts.take().pop().unwrap().grant();
    assert!(call.as_mut().now_or_never().is_none());
    assert_eq!(payments.load(Ordering::Relaxed), 0, "less than half of the lease is left");
    run.lease.extended(run.lease.now());
    assert!(call.await.is_some());
    assert_eq!(payments.load(Ordering::Relaxed), 1);
}

/// A slow append of the start does not use up the time of the tool.
#[tokio::test(start_paused = true)]
async fn the_wait_for_the_recorded_start_does_not_count_towards_the_timeout() {
    const SECOND: Duration = Duration::from_secs(1);
    let schema = json!({"type": "object"});
    let slow = Tool::dynamic("pay", "Pays.", schema, |input: serde_json::Value, _| async {
        tokio::time::sleep(SECOND).await;
        Ok(input)
    });
    let (agent, scene) = payer(slow.effect(EffectClass::AtMostOnce).timeout(2 * SECOND));
    let mut run = scene.begin(&agent).await;
    let (call, starts) = first_call(&mut run).await;
    let mut call = pin!(call.drive());
    assert!(call.as_mut().now_or_never().is_none());
    advance(5 * SECOND).await;
    starts.take().pop().unwrap().grant();
    let end = call.await.unwrap();
    let is_success = |event: &Event| matches!(event, Event::ToolFinished(finish) if matches!(finish.outcome, ToolOutcome::Success(_)));
    assert!(end.facts().any(|event| is_success(&event)));
}

/// After this time, another worker of the run that continues the call may assume that the call has ended.
#[tokio::test(start_paused = true)]
async fn a_work_item_records_a_start_again_if_recording_it_took_long() {
    let payments = Arc::default();
    let (agent, scene) = payer(pay(&payments).effect(EffectClass::AtMostOnce));
    let mut run = scene.begin(&agent).await;
    run.driver.in_work_items = true;
    let (call, starts) = first_call(&mut run).await;
    let mut call = pin!(call.drive());
    assert!(call.as_mut().now_or_never().is_none());
    advance(MAX_START_WINDOW + Duration::from_millis(1)).await;
    starts.take().pop().unwrap().grant();
    assert!(call.as_mut().now_or_never().is_none());
    assert_eq!(payments.load(Ordering::Relaxed), 0);
    let again = starts.take().pop().unwrap();
    assert!(matches!(again.event(), Event::ToolStarted { attempt: 2, .. }), "{again:?}");
    again.grant();
    assert!(call.await.is_some());
    assert_eq!(payments.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_work_item_waits_for_a_late_start_of_the_same_run() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let once = pay(&Arc::default()).effect(EffectClass::AtMostOnce).timeout(TIMEOUT);
    let (agent, scene) = payer(once);
    let mut run = scene.begin(&agent).await;
    run.driver.in_work_items = true;
    let (call, starts) = first_call(&mut run).await;
    assert!(pin!(call.drive()).now_or_never().is_none());
    let start = starts.take().pop().unwrap().event().clone();
    run.driver.record(&mut run.lease, vec![start]).await.unwrap();
    let (call, _) = next_call(&run);
    assert!(call.task.in_doubt);
    assert_eq!(call.doubt, TIMEOUT + MAX_START_WINDOW);
}

#[tokio::test(start_paused = true)]
async fn any_other_call_starts_with_a_third_of_the_lease_left() {
    for (passed, started) in [(55, 1), (70, 0)] {
        let payments = Arc::default();
        let (agent, scene) = payer(pay(&payments));
        let mut run = scene.begin(&agent).await;
        let (call, _) = first_call(&mut run).await;
        advance(LEASE * passed / 100).await;
        let ended = call.drive().now_or_never();
        assert_eq!((ended.is_some(), payments.load(Ordering::Relaxed)), (started == 1, started));
    }
}

/// The log contains the timeout of a call in milliseconds, and a later run waits until it has
/// passed.
#[tokio::test(start_paused = true)]
async fn a_timeout_beyond_every_clock_neither_overflows_nor_passes() {
    let payments = Arc::default();
    let once = pay(&payments).effect(EffectClass::AtMostOnce).timeout(Duration::MAX);
    let (agent, scene) = payer(once);
    let mut run = scene.begin(&agent).await;
    let (call, starts) = first_call(&mut run).await;
    let mut call = pin!(call.drive());
    assert!(call.as_mut().now_or_never().is_none());
    let start = starts.take().pop().unwrap();
    let event = start.event().clone();
    assert!(matches!(event, Event::ToolStarted { timeout_ms: Some(u64::MAX), .. }), "{event:?}");
    run.driver.record(&mut run.lease, vec![event]).await.unwrap();
    start.grant();
    assert!(call.await.is_some());
    assert_eq!(payments.load(Ordering::Relaxed), 1);

    run.lease.release().await;
    let next = scene.resume(&agent).await;
    let (call, _) = next_call(&next);
    assert!(call.task.in_doubt);
    let mut call = pin!(call.drive());
    assert!(call.as_mut().now_or_never().is_none());
    advance(Duration::from_secs(365 * 24 * 60 * 60)).await;
    assert!(call.now_or_never().is_none(), "the one before may still be at work");
}
