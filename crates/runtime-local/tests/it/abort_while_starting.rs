//! An abort that a run reads when it records the start of a queued child.

use std::sync::Arc;

use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, SubAgent};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::StateStore;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The output of the children.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Paid {
    amount: u32,
}

/// Returns a child that needs an approval before it pays.
fn payer(name: &str) -> Agent<Paid> {
    let run = |_: Value, _: ToolContext| async move { Ok::<_, ToolError>(json!("paid")) };
    let pay = Tool::dynamic("pay", "Pays.", json!({"type": "object"}), run);
    Agent::builder(name)
        .description("Pays.")
        .system_prompt("You pay.")
        .model("scripted")
        .output::<Paid>()
        .tool(pay.requires_approval())
        .build()
        .unwrap()
}

/// Two children are suspended while the start of the second of them is recorded, and the session is aborted before
/// that. The abort answers their calls, so the run must not record that the children wait.
#[tokio::test]
async fn children_that_are_suspended_while_an_abort_is_read_are_not_recorded() {
    let (model, start) = (Gate::new(), Gate::new());
    let memory = MemoryStore::new();
    let store = FaultStore::new(Arc::new(memory.clone()));
    store.inject(r#""child_started":{"call":"1.2""#, Fault::HoldBefore(start.clone()));
    let agent = Agent::builder("boss")
        .system_prompt("You delegate.")
        .model("scripted")
        .tool_concurrency(2)
        .sub_agent(SubAgent::new(&payer("quick")))
        .sub_agent(SubAgent::new(&payer("slow")))
        .build()
        .unwrap();
    let process = |store: Arc<dyn StateStore>| {
        let task = || json!({"message": "Pay."});
        let asks = Reply::calls([
            ("subagent__quick", task()),
            ("subagent__slow", task()),
            ("subagent__quick", task()),
        ]);
        let pays = || Reply::tool_call("pay", json!({}));
        let llm = RoutingScriptedLlm::new()
            .agent("boss", ScriptedLlm::new([asks]))
            .agent("quick", ScriptedLlm::new([pays(), pays()]))
            .agent("slow", ScriptedLlm::new([pays().at_gate(&model)]));
        let runtime = LocalRuntime::builder().state_store(store).llm(llm);
        runtime.stream_manager(Arc::new(memory.clone())).build().unwrap()
    };
    let (runtime, other) = (process(Arc::new(store)), process(Arc::new(memory.clone())));
    let options = ExecuteOptions::default().session("s");
    let handle = runtime.execute(agent.erased(), "go".into(), options).await.unwrap();

    start.reached().await;
    model.open();
    // The test and the runs share a thread, so both children are suspended meanwhile.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // The other process cannot tell the run, which reads the request when it appends.
    other.abort(&SessionId::from("s"), None).await.unwrap();
    start.open();

    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Aborted);
}
