//! Workers that crash while executing a run.

use helix_agents_runtime::RuntimeBuilder as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helix_agents_core::agent::{Agent, AgentBuilder, AnyAgent};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::AgentExecutor as _;
use helix_agents_core::session::{RunStatus, Session};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::deployment::{Deployment, Process, start};

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

fn teller() -> AgentBuilder {
    Agent::builder("teller").system_prompt("You tell.").model("scripted")
}

type Trace = Arc<Mutex<Vec<String>>>;

/// Returns a tool that records its idempotency key and then waits at the gate.
fn act(trace: &Trace, gate: &Gate) -> Tool {
    let (trace, gate) = (Arc::clone(trace), gate.clone());
    Tool::function("act", "Acts.", move |input: Word, cx: ToolContext| {
        trace.lock().unwrap().push(cx.idempotency_key());
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok(input.word)
        }
    })
}

fn acts() -> Reply {
    Reply::tool_call("act", json!({ "word": "x" }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_call_of_a_crashed_worker_is_repeated_by_another_worker_in_the_same_run() {
    let here = Deployment::new().await;
    let agents = [teller().build().unwrap().erased()];
    let gate = Gate::new();
    let first = here.worker(ScriptedLlm::new([Reply::text("lost").at_gate(&gate)]), &agents).await;
    let handle = first.start(&agents[0]).await;
    within(gate.reached()).await;
    let client = here.client(&agents).await;
    first.kill().await;
    let second = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    let handle = client.handle(handle.session()).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let fold = handle.load_session().await.unwrap();
    assert_eq!(fold.runs().count(), 1, "no other run had to take over");
    assert!(format!("{:?}", fold.transcript()).contains("done"));
    second.shut_down().await;
}

/// Runs an agent on two workers with the same script. The first worker crashes in the tool.
async fn crash_in_the_tool(agent: &AnyAgent, gate: &Gate) -> Session {
    let here = Deployment::new().await;
    let agents = [Arc::clone(agent)];
    let script = || ScriptedLlm::new([acts(), Reply::text("done")]);
    let first = here.worker(script(), &agents).await;
    let session = first.start(agent).await.session().clone();
    within(gate.reached()).await;
    first.kill().await;
    gate.open();
    let second = here.worker(script(), &agents).await;
    let handle = second.runtime.handle(&session).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let fold = handle.load_session().await.unwrap();
    assert_eq!(fold.runs().count(), 1);
    second.shut_down().await;
    fold
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_of_a_crashed_worker_runs_again_with_the_same_key() {
    let (trace, gate) = (Trace::default(), Gate::new());
    let agent = teller().tool(act(&trace, &gate)).build().unwrap();
    crash_in_the_tool(&agent.erased(), &gate).await;
    let trace = trace.lock().unwrap();
    assert_eq!(trace.len(), 2);
    assert_eq!(trace[0], trace[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_at_most_once_tool_of_a_crashed_worker_is_not_run_again() {
    let (trace, gate) = (Trace::default(), Gate::new());
    let tool = act(&trace, &gate).effect(EffectClass::AtMostOnce).timeout(Duration::from_secs(1));
    let agent = teller().tool(tool).build().unwrap();
    let fold = crash_in_the_tool(&agent.erased(), &gate).await;
    assert_eq!(trace.lock().unwrap().len(), 1);
    let transcript = format!("{:?}", fold.transcript());
    assert!(transcript.contains("whether the call took effect"), "{transcript}");
}

/// Each worker repeats the same calls in the same run, and the last one ends the run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_crashes_every_worker_ends_the_run() {
    let here = Deployment::new().await;
    let gate = Gate::new();
    let closed = gate.clone();
    let tool = Tool::function("die", "Dies.", move |_: Word, _: ToolContext| {
        let gate = closed.clone();
        async move {
            gate.pass().await;
            Ok("alive")
        }
    });
    let agent = teller().tool(tool).max_takeovers(2).build().unwrap().erased();
    let agents = [Arc::clone(&agent)];
    let word = || json!({ "word": "x" });
    let script = || ScriptedLlm::new([Reply::calls([("die", word()), ("die", word())])]);
    let client = here.client(&agents).await;
    let handle = start(&client, &agent).await;
    for crashes in 1..=2 {
        let worker = here.worker(script(), &agents).await;
        within(gate.reached_by(crashes * 2)).await;
        worker.kill().await;
    }
    let last = here.worker(script(), &agents).await;
    let failed = within(handle.result()).await.unwrap();
    let error = failed.error.unwrap();
    assert!(error.is(ErrorCode::CrashLoop), "{error}");
    assert!(error.message.contains("1.0 (`die`), 1.1 (`die`)"), "{error}");
    assert_eq!(handle.load_session().await.unwrap().runs().count(), 1, "no other run took over");
    last.shut_down().await;
}

/// Other workers do not have to wait for missing heartbeats.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_shut_down_hands_over_its_work() {
    let here = Deployment::new().await;
    let agents = [teller().build().unwrap().erased()];
    let gate = Gate::new();
    let slow = ScriptedLlm::new([Reply::text("lost").at_gate(&gate)]);
    let lease = Duration::from_secs(600);
    let first = Process::new(here.runtime(slow, &agents).lease(lease)).await;
    let client = here.runtime(ScriptedLlm::new([]), &agents).lease(lease).connect().await.unwrap();
    let handle = start(&client, &agents[0]).await;
    within(gate.reached()).await;
    within(first.shut_down()).await;
    let quick = ScriptedLlm::new([Reply::text("done")]);
    let second = Process::new(here.runtime(quick, &agents).lease(lease)).await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(handle.load_session().await.unwrap().runs().count(), 1);
    second.shut_down().await;
}
