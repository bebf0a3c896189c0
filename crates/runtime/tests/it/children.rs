//! A parent that is executed as work items and its child: which run resumes the child, and which interrupts it honours.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::executor::AgentExecutor as _;
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::session::RunStatus;
use helix_agents_runtime::{NextWork, RunRef, WorkItem};
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::json;
use tokio::time::Instant;

use crate::by_hand::{ByHand, S, Scene, boss, boss_model, helps};

/// The maximum time that a child is followed at once.
const FOLLOW: Duration = Duration::from_secs(1);

fn call() -> CallId {
    CallId::from("1.0")
}

fn child() -> SessionId {
    SessionId::of_call(&S.into(), &call())
}

fn scene(engine: ByHand) -> Scene {
    Scene::new(engine, boss_model(), [boss()])
}

/// Starts a parent that is about to wait for its child, and the child. Returns both runs.
async fn started(scene: &Scene) -> (RunRef, RunRef) {
    let (_, parent) = scene.start(boss()).await;
    let next = scene.up_to_calls(&parent).await;
    assert!(
        matches!(next, NextWork::Calls { ref children, .. } if children.len() == 1),
        "{next:?}"
    );
    (parent, scene.started_as(1).await)
}

/// Interrupts the child and waits until it has stopped.
async fn interrupted(scene: &Scene, run: &RunRef) {
    // The interrupt must be later than all earlier starts, by the store's clock.
    let before = scene.head(&S.into()).await.updated_at;
    scene.until_past(before).await;
    scene.runtime.interrupt(&child(), None).await.unwrap();
    scene.drive(run).await;
    assert_eq!(scene.runs(&child()).await, [RunStatus::Interrupted]);
}

async fn follow(scene: &Scene, parent: &RunRef) {
    scene.runtime.follow_child(parent, &call(), FOLLOW).await.unwrap();
}

/// The child is followed before and after the interrupt.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_interrupted_between_two_follows_stays_so() {
    let scene = scene(ByHand::default());
    let (parent, run) = started(&scene).await;
    follow(&scene, &parent).await;
    interrupted(&scene, &run).await;
    follow(&scene, &parent).await;
    assert_eq!(scene.runs(&child()).await, [RunStatus::Interrupted]);
    let settled =
        scene.runtime.perform(&parent, &WorkItem::Settle(vec![call()]), true).await.unwrap();
    assert_eq!(settled, NextWork::Done);
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::SuspendedAwaitingChildren]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_starts_after_its_child_was_interrupted_resumes_it() {
    let scene = scene(ByHand::default());
    let (parent, run) = started(&scene).await;
    interrupted(&scene, &run).await;
    scene.drive(&parent).await;
    let parent = scene.resume(boss()).await;
    let helped = async {
        let run = scene.started_as(3).await;
        scene.drive(&run).await;
    };
    tokio::join!(scene.drive(&parent), helped);
    assert_eq!(scene.runs(&child()).await, [RunStatus::Interrupted, RunStatus::Completed]);
    let above = scene.runs(&S.into()).await;
    assert_eq!(above, [RunStatus::SuspendedAwaitingChildren, RunStatus::Completed]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_does_not_resume_an_interrupted_child() {
    let scene = scene(ByHand::default());
    let (parent, run) = started(&scene).await;
    interrupted(&scene, &run).await;
    scene.drive(&parent).await;
    let parent = scene.resume(boss()).await;
    scene.up_to_calls(&parent).await;
    scene.runtime.interrupt(&S.into(), None).await.unwrap();
    follow(&scene, &parent).await;
    assert_eq!(scene.runs(&child()).await, [RunStatus::Interrupted]);
}

/// The owner crashed, and the engine hands the run to another worker.
#[tokio::test(start_paused = true)]
async fn a_child_that_its_engine_recovers_is_followed() {
    let gate = Gate::opened();
    let scene = scene(ByHand { recovers: Some(gate.clone()), ..ByHand::default() });
    let (parent, run) = started(&scene).await;
    scene.abandon(&run).await;
    let executed = async {
        gate.reached().await;
        scene.drive(&run).await;
    };
    tokio::join!(follow(&scene, &parent), executed);
    assert_eq!(scene.runs(&child()).await, [RunStatus::Completed]);
    scene.drive(&parent).await;
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Completed]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_its_engine_does_not_recover_is_taken_over() {
    let scene = scene(ByHand::default());
    let (parent, run) = started(&scene).await;
    scene.abandon(&run).await;
    let taken_over = async {
        let run = scene.started_as(2).await;
        scene.drive(&run).await;
    };
    tokio::join!(follow(&scene, &parent), taken_over);
    assert_eq!(scene.runs(&child()).await, [RunStatus::Superseded, RunStatus::Completed]);
    scene.drive(&parent).await;
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Completed]);
}

/// The slow child keeps its slot; the next child takes the slot of the one that has ended.
#[tokio::test(start_paused = true)]
async fn following_a_slow_child_ends_when_another_child_has_ended() {
    let call = || ("subagent__helper", json!({ "message": "help" }));
    let llm = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([Reply::calls([call(), call(), call()])]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!(true))]));
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    let boss = boss.sub_agent(&helps()).tool_concurrency(2).build().unwrap().erased();
    let scene = Scene::new(ByHand::default(), llm, [Arc::clone(&boss)]);
    let (_, parent) = scene.start(boss).await;
    let NextWork::Calls { children, then, .. } = scene.up_to_calls(&parent).await else {
        panic!("expected pending children");
    };
    assert_eq!(children.len(), 2);
    let long = Duration::from_secs(3600);
    let follows = async {
        let start = Instant::now();
        scene.runtime.follow_child(&parent, &children[0].call, long).await.unwrap();
        assert!(start.elapsed() < long / 2, "it waited for the slow child");
    };
    let ends = async {
        let quick = scene.started_as(2).await;
        assert_eq!(quick.session, children[1].session);
        scene.drive(&quick).await;
    };
    tokio::join!(follows, ends);
    let next = scene.runtime.perform(&parent, &then, true).await.unwrap();
    assert_eq!(next, NextWork::WorkItem(WorkItem::Children));
    let next = scene.runtime.perform(&parent, &WorkItem::Children, true).await.unwrap();
    let NextWork::Calls { children: now, .. } = next else { panic!("{next:?}") };
    let now: Vec<_> = now.iter().map(|child| child.call.as_str()).collect();
    assert_eq!(now, ["1.0", "1.2"]);
}
