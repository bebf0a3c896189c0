//! Work items that an engine retries repeatedly within one run.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::id::CallId;
use helix_agents_core::session::Session;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime::{NextWork, RunRef, WorkItem};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::{Value, json};

use crate::by_hand::{ByHand, S, Scene};

/// The maximum number of repetitions of a work item in these tests.
const REPEATS: u32 = 2;

fn tool(name: &str, gate: &Gate) -> Tool {
    let gate = gate.clone();
    let run = move |_: Value, _: ToolContext| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(json!("alive"))
        }
    };
    Tool::dynamic(name, "Does it.", json!({"type": "object"}), run)
}

/// Returns an agent with a tool that crashes every process and a harmless tool.
fn agent(deadly: &Gate) -> AnyAgent {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let agent = agent.tool(tool("die", deadly)).tool(tool("live", &Gate::opened()));
    agent.max_takeovers(REPEATS).build().unwrap().erased()
}

fn scene(replies: impl IntoIterator<Item = Reply>) -> Scene {
    Scene::new(ByHand::default(), ScriptedLlm::new(replies), [])
}

/// Executes work until it has reached the gate `count` times, and drops it there like a crash.
async fn crash<T>(work: impl Future<Output = T>, gate: &Gate, count: usize) {
    tokio::select! {
        biased;
        _ = work => unreachable!("the work never completes"),
        () = gate.reached_by(count) => {}
    }
}

/// Makes one attempt of a work item.
fn perform<'a>(
    scene: &'a Scene,
    run_ref: &'a RunRef,
    item: &'a WorkItem,
    is_first: bool,
) -> BoxFuture<'a, Result<NextWork>> {
    scene.runtime.perform(run_ref, item, is_first).boxed()
}

/// Executes the first work item and returns the second one.
async fn opened(scene: &Scene, run_ref: &RunRef) -> WorkItem {
    match scene.runtime.perform(run_ref, &WorkItem::Open, true).await.unwrap() {
        NextWork::WorkItem(item) => item,
        next => unreachable!("{next:?}"),
    }
}

async fn failure(scene: &Scene) -> String {
    let fold = scene.fold(&S.into()).await;
    assert_eq!(fold.runs().count(), 1, "no other run took over");
    let error = fold.last_run().unwrap().error.clone().unwrap();
    assert!(error.is(ErrorCode::CrashLoop), "{error}");
    error.to_string()
}

fn repeats(fold: &Session, call: &str) -> u32 {
    let call = fold.closed_step().and_then(|step| step.call(&CallId::from(call)));
    call.unwrap().repeats
}

#[tokio::test]
async fn a_call_that_crashes_every_process_ends_the_run_and_is_named() {
    let deadly = Gate::new();
    let scene = scene([Reply::tool_call("die", json!({}))]);
    let (_handle, run_ref) = scene.start(agent(&deadly)).await;
    let model = opened(&scene, &run_ref).await;
    let next = perform(&scene, &run_ref, &model, true).await.unwrap();
    let call = WorkItem::Call("1.0".into());
    assert_eq!(next, NextWork::WorkItem(call.clone()));
    crash(perform(&scene, &run_ref, &call, true), &deadly, 1).await;
    crash(perform(&scene, &run_ref, &call, false), &deadly, 2).await;
    let next = within(perform(&scene, &run_ref, &call, false)).await.unwrap();
    assert_eq!(next, NextWork::Done);
    let failure = failure(&scene).await;
    assert!(failure.contains("1.0 (`die`)"), "{failure}");
}

#[tokio::test]
async fn a_model_call_that_crashes_every_process_ends_the_run() {
    let deadly = Gate::new();
    let scene = scene([Reply::text("never").at_gate(&deadly)]);
    let (_handle, run_ref) = scene.start(agent(&Gate::new())).await;
    let model = opened(&scene, &run_ref).await;
    crash(perform(&scene, &run_ref, &model, true), &deadly, 1).await;
    crash(perform(&scene, &run_ref, &model, false), &deadly, 2).await;
    let next = within(perform(&scene, &run_ref, &model, false)).await.unwrap();
    assert_eq!(next, NextWork::Done);
    let failure = failure(&scene).await;
    assert!(failure.contains("the reply of step 1"), "{failure}");
}

/// The concurrent calls still run and have their results.
#[tokio::test]
async fn a_concurrent_call_that_crashes_every_process_ends_the_run() {
    let deadly = Gate::new();
    let scene = scene([Reply::calls([("die", json!({})), ("live", json!({}))])]);
    let (_handle, run_ref) = scene.start(agent(&deadly)).await;
    let NextWork::Calls { calls, then, .. } = scene.up_to_calls(&run_ref).await else {
        unreachable!()
    };
    let [die, live] = &*calls else { unreachable!("{calls:?}") };
    let runtime = &scene.runtime;
    crash(runtime.perform_call(&run_ref, die), &deadly, 1).await;
    crash(runtime.retry_call(&run_ref, die), &deadly, 2).await;
    within(runtime.retry_call(&run_ref, die)).await.unwrap();
    runtime.perform_call(&run_ref, live).await.unwrap();
    let mut next = perform(&scene, &run_ref, &then, true).await.unwrap();
    if let NextWork::WorkItem(item) = &next {
        // The other call was left for this item.
        assert_eq!(*item, WorkItem::Call(live.clone()));
        next = perform(&scene, &run_ref, item, true).await.unwrap();
    }
    assert_eq!(next, NextWork::Done);
    let failure = failure(&scene).await;
    assert!(failure.contains("1.0 (`die`)") && !failure.contains("live"), "{failure}");
    let fold = scene.fold(&S.into()).await;
    assert_eq!((repeats(&fold, "1.0"), repeats(&fold, "1.1")), (REPEATS, 0));
    assert!(format!("{:?}", fold.transcript()).contains("alive"), "{:?}", fold.transcript());
}

/// An engine that considers a live worker dead lets two workers make the model call. The first worker is not stopped by
/// the recorded retry of the second one.
#[tokio::test]
async fn a_worker_that_was_considered_dead_records_its_result() {
    let slow = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("So.").at_gate(&slow)]);
    let scene = Scene::new(ByHand::default(), llm.clone(), []);
    let (_handle, run_ref) = scene.start(agent(&Gate::new())).await;
    let model = opened(&scene, &run_ref).await;
    let both = async {
        let first = perform(&scene, &run_ref, &model, true);
        let second = async {
            slow.reached().await;
            perform(&scene, &run_ref, &model, false).await
        };
        let opens = async {
            slow.reached_by(2).await;
            slow.open();
        };
        tokio::join!(first, second, opens)
    };
    let (first, second, ()) = both.await;
    assert_eq!((first.unwrap(), second.unwrap()), (NextWork::Done, NextWork::Done));
    assert_eq!(llm.calls(), 2, "one call per worker");
}
