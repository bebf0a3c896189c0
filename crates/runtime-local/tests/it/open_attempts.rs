//! Stream attempts whose outcome the log never contains.

use std::sync::Arc;

use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager as _;
use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::{Value, json};

/// Returns a tool that waits at the gate.
fn tool(name: &str, gate: &Gate) -> Tool {
    let gate = gate.clone();
    Tool::dynamic(name, "Works.", json!({"type": "object"}), move |_: Value, _: ToolContext| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(json!("done"))
        }
    })
}

/// A tool finishes while the run records the start of the next one, and the session is aborted before its result is
/// recorded. The abort answers the call, so the stream must not keep the result that it has shown.
#[tokio::test]
async fn an_aborted_run_discards_the_attempts_of_the_calls_that_it_answers() {
    let (work, start) = (Gate::new(), Gate::new());
    let memory = MemoryStore::new();
    let store = FaultStore::new(Arc::new(memory.clone()));
    store.inject(r#""tool_started":{"call":"1.1""#, Fault::HoldBefore(start.clone()));
    let agent = Agent::builder("worker")
        .system_prompt("You work.")
        .model("scripted")
        .tool(tool("work", &work))
        .tool(tool("pay", &work).effect(EffectClass::AtMostOnce))
        .build()
        .unwrap();
    let process = |store: Arc<dyn StateStore>| {
        let calls = Reply::calls([("work", json!({})), ("pay", json!({}))]);
        let runtime = LocalRuntime::builder().state_store(store).llm(ScriptedLlm::new([calls]));
        runtime.stream_manager(Arc::new(memory.clone())).build().unwrap()
    };
    let (runtime, other) = (process(Arc::new(store)), process(Arc::new(memory.clone())));
    let session = SessionId::from("s");
    let options = ExecuteOptions::default().session("s");
    let handle = runtime.execute(agent.erased(), "go".into(), options).await.unwrap();

    start.reached().await;
    work.open();
    // The test and the run share a thread, so the call ends meanwhile.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // The other process cannot tell the run, which reads the request when it appends.
    other.abort(&session, None).await.unwrap();
    start.open();

    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Aborted);
    let open = memory.info(&session).await.unwrap().open;
    assert!(open.is_empty(), "{open:?}");
}
