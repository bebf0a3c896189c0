//! Parts that an engine tries again and again, without another run.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::id::CallId;
use helix_agents_core::session::Session;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime::{Next, RunRef, WorkItem};
use helix_agents_testkit::gate::{Gate, within};
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use serde_json::{Value, json};

use crate::by_hand::{ByHand, S, Scene};

/// How often the parts of this story may be repeated.
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

/// An agent with a tool that no process outlives, and another one.
fn agent(deadly: &Gate) -> AnyAgent {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let agent = agent.tool(tool("die", deadly)).tool(tool("live", &Gate::opened()));
    agent.max_takeovers(REPEATS).build().unwrap().erased()
}

fn scene(replies: impl IntoIterator<Item = Reply>) -> Scene {
    Scene::new(ByHand::default(), ScriptedLlm::new(replies), [])
}

/// Tries something until it stands at the gate for the time that `count` says, where its process dies.
async fn dies<T>(tried: impl Future<Output = T>, gate: &Gate, count: usize) {
    tokio::select! {
        biased;
        _ = tried => unreachable!("nothing outlives it"),
        () = gate.reached_by(count) => {}
    }
}

/// One try at a part.
fn tried<'a>(
    scene: &'a Scene,
    of: &'a RunRef,
    part: &'a WorkItem,
    is_first: bool,
) -> BoxFuture<'a, Result<Next>> {
    scene.runtime.perform(of, part, is_first).boxed()
}

/// The part after the opening one.
async fn opened(scene: &Scene, of: &RunRef) -> WorkItem {
    match scene.runtime.perform(of, &WorkItem::Open, true).await.unwrap() {
        Next::WorkItem(part) => part,
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
async fn a_call_that_no_process_outlives_is_given_up_and_named() {
    let deadly = Gate::new();
    let scene = scene([Reply::tool_call("die", json!({}))]);
    let (_handle, of) = scene.begin(agent(&deadly)).await;
    let model = opened(&scene, &of).await;
    let next = tried(&scene, &of, &model, true).await.unwrap();
    let call = WorkItem::Call("1.0".into());
    assert_eq!(next, Next::WorkItem(call.clone()));
    dies(tried(&scene, &of, &call, true), &deadly, 1).await;
    dies(tried(&scene, &of, &call, false), &deadly, 2).await;
    let next = within(tried(&scene, &of, &call, false)).await.unwrap();
    assert_eq!(next, Next::Over);
    let failure = failure(&scene).await;
    assert!(failure.contains("1.0 (`die`)"), "{failure}");
}

#[tokio::test]
async fn a_model_call_that_no_process_outlives_is_given_up() {
    let deadly = Gate::new();
    let scene = scene([Reply::text("never").at_gate(&deadly)]);
    let (_handle, of) = scene.begin(agent(&Gate::new())).await;
    let model = opened(&scene, &of).await;
    dies(tried(&scene, &of, &model, true), &deadly, 1).await;
    dies(tried(&scene, &of, &model, false), &deadly, 2).await;
    let next = within(tried(&scene, &of, &model, false)).await.unwrap();
    assert_eq!(next, Next::Over);
    let failure = failure(&scene).await;
    assert!(failure.contains("the reply of step 1"), "{failure}");
}

/// The calls beside it still run, and have their results.
#[tokio::test]
async fn of_calls_side_by_side_the_one_that_no_process_outlives_is_given_up() {
    let deadly = Gate::new();
    let scene = scene([Reply::calls([("die", json!({})), ("live", json!({}))])]);
    let (_handle, of) = scene.begin(agent(&deadly)).await;
    let Next::Calls { calls, then, .. } = scene.up_to_calls(&of).await else { unreachable!() };
    let [die, live] = &*calls else { unreachable!("{calls:?}") };
    let runtime = &scene.runtime;
    dies(runtime.perform_call(&of, die), &deadly, 1).await;
    dies(runtime.perform_call_again(&of, die), &deadly, 2).await;
    within(runtime.perform_call_again(&of, die)).await.unwrap();
    runtime.perform_call(&of, live).await.unwrap();
    let mut next = tried(&scene, &of, &then, true).await.unwrap();
    if let Next::WorkItem(part) = &next {
        // The one beside it was left for this.
        assert_eq!(*part, WorkItem::Call(live.clone()));
        next = tried(&scene, &of, part, true).await.unwrap();
    }
    assert_eq!(next, Next::Over);
    let failure = failure(&scene).await;
    assert!(failure.contains("1.0 (`die`)") && !failure.contains("live"), "{failure}");
    let fold = scene.fold(&S.into()).await;
    assert_eq!((repeats(&fold, "1.0"), repeats(&fold, "1.1")), (REPEATS, 0));
    assert!(format!("{:?}", fold.transcript()).contains("alive"), "{:?}", fold.transcript());
}

/// An engine that takes a worker for dead that lives has two of them make the model call. The one that is
/// first is not stopped by the word that another one tries.
#[tokio::test]
async fn a_worker_that_was_taken_for_dead_records_what_it_did() {
    let slow = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("So.").at_gate(&slow)]);
    let scene = Scene::new(ByHand::default(), llm.clone(), []);
    let (_handle, of) = scene.begin(agent(&Gate::new())).await;
    let model = opened(&scene, &of).await;
    let both = async {
        let first = tried(&scene, &of, &model, true);
        let second = async {
            slow.reached().await;
            tried(&scene, &of, &model, false).await
        };
        let opens = async {
            slow.reached_by(2).await;
            slow.open();
        };
        tokio::join!(first, second, opens)
    };
    let (first, second, ()) = both.await;
    assert_eq!((first.unwrap(), second.unwrap()), (Next::Over, Next::Over));
    assert_eq!(llm.calls(), 2, "once each");
}
