//! One append per step, which only the local runtime offers.

use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_conformance::normalise;
use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::budget::Budget;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, AgentResult, ExecuteOptions, RunHandle};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{Durability, RunStatus, load, load_events};
use helix_agents_core::store::StateStore;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Notes {
    notes: Vec<String>,
}

fn note() -> Tool {
    Tool::function("note", "Notes a word.", |input: Notes, cx: ToolContext| async move {
        cx.update_state(|state: &mut Notes| state.notes.extend(input.notes))?;
        Ok::<_, ToolError>(cx.state::<Notes>()?.notes.len())
    })
}

fn notes(word: &str) -> (&'static str, serde_json::Value) {
    ("note", json!({"notes": [word]}))
}

fn teller() -> AgentBuilder {
    Agent::builder("teller")
        .system_prompt("You tell.")
        .model("scripted")
        .state::<Notes>()
        .tool(note())
}

/// Returns a runtime with this store and separate streams.
fn runtime(store: impl StateStore, llm: impl LlmAdapter) -> LocalRuntime {
    let runtime = LocalRuntime::builder().state_store(std::sync::Arc::new(store)).llm(llm);
    let runtime = runtime.stream_manager(std::sync::Arc::new(MemoryStore::default()));
    runtime.durability(Durability::PerStep).build().unwrap()
}

async fn start(runtime: &LocalRuntime, agent: &Agent) -> RunHandle {
    let options = ExecuteOptions::default().session("story");
    runtime.execute(agent.erased(), "go".into(), options).await.unwrap()
}

async fn end(handle: &RunHandle) -> AgentResult {
    within(handle.result()).await.unwrap()
}

/// The durability mode changes the appends, not the events.
#[tokio::test]
async fn one_append_per_step_records_the_same_events() {
    let store = MemoryStore::default();
    let llm = ScriptedLlm::new([
        Reply::calls([notes("a"), notes("b")]),
        Reply::calls([notes("c")]),
        Reply::text("done"),
    ]);
    let handle = start(&runtime(store.clone(), llm), &teller().build().unwrap()).await;
    assert_eq!(end(&handle).await.status, RunStatus::Completed);
    let appends = StateStore::read_log(&store, &"story".into(), 0, 100).await.unwrap();
    assert_eq!(appends.len(), 4, "the start and one append for each step");
    let events = load_events(&store, &"story".into(), 0).await.unwrap();
    expect_test::expect![[r#"
        session teller state={"notes":[]}
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 note({"notes":["a"]})
          call 1.1 note({"notes":["b"]})
          result 1.0 1 state=[{"op":"add","path":"/notes/-","value":"a"}]
          result 1.1 1 state=[{"op":"add","path":"/notes/-","value":"b"}]
        step 1 closed
        step 2 reply ToolUse in=10 out=5
          call 2.0 note({"notes":["c"]})
          result 2.0 3 state=[{"op":"add","path":"/notes/-","value":"c"}]
        step 2 closed
        step 3 reply EndTurn in=10 out=5 "done"
        step 3 closed
        end completed "done"
    "#]]
    .assert_eq(&normalise::log(&events));
}

/// Budgets apply unchanged.
#[tokio::test]
async fn one_append_per_step_is_held_to_the_same_budget() {
    let store = MemoryStore::default();
    let call = || Reply::calls([notes("a")]);
    let llm = ScriptedLlm::new([call(), call(), call(), Reply::text("done")]);
    let agent = teller().budget(Budget::new().tokens(40)).build().unwrap();
    let failed = end(&start(&runtime(store.clone(), llm.clone()), &agent).await).await;
    assert!(failed.error.as_ref().unwrap().is(ErrorCode::BudgetExceeded), "{failed:?}");
    let spent = load(&store, &"story".into()).await.unwrap().spent();
    assert_eq!((spent.tokens, spent.tool_calls, llm.calls()), (45, 2, 3));
}

/// Otherwise a crash at this point would leave an unknown child behind, and the repeated model call could assign the
/// call's id to another call.
#[tokio::test]
async fn a_reply_is_recorded_before_its_children_start() {
    let store = MemoryStore::default();
    let gate = Gate::new();
    let held = FaultStore::new(std::sync::Arc::new(store.clone()))
        .with_fault("child_started", Fault::HoldBefore(gate.clone()));
    let asks = Reply::tool_call("subagent__helper", json!({"message": "find out"}));
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([asks, Reply::text("It is so.")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!({"notes": ["yes"]}))]));
    let helper = Agent::builder("helper").description("Finds out.").system_prompt("You find out.");
    let helper = helper.model("scripted").output::<Notes>().build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let handle = start(&runtime(held, llm), &agent).await;
    gate.reached().await;
    let fold = load(&store, &"story".into()).await.unwrap();
    assert!(fold.open_step().is_some(), "the child started before the reply was recorded");
    gate.open();
    assert_eq!(end(&handle).await.status, RunStatus::Completed);
}
