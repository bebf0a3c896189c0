//! Concurrent calls with separate executions that conflict in the log.

use std::sync::Arc;

use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, load};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime::Settings;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use helix_agents_testkit::trees::Redelivery;
use serde_json::{Value, json};

use crate::in_work_items::in_work_items;

/// The number of calls next to the slow one, which exceeds the retry limit of appends with decisions.
const OTHERS: usize = 80;

/// Returns the text that identifies the append of a call's result.
fn result_of(index: usize) -> String {
    format!(r#""tool_finished":{{"call":"1.{index}""#)
}

fn gates(count: usize) -> Vec<Gate> {
    (0..count).map(|_| Gate::new()).collect()
}

/// Each time the call tries to append its result, another call appends first.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_overtaken_by_all_others_still_has_its_result() {
    let (tries, others) = (gates(OTHERS + 1), gates(OTHERS));
    let memory = MemoryStore::new();
    let store = FaultStore::new(Arc::new(memory.clone()));
    for gate in &tries {
        store.inject(&result_of(0), Fault::HoldBefore(gate.clone()));
    }
    for (gate, index) in others.iter().zip(1..) {
        store.inject(&result_of(index), Fault::HoldAfter(gate.clone()));
    }
    let work = |_: Value, _: ToolContext| async { Ok::<_, ToolError>(json!("done")) };
    let work = Tool::dynamic("work", "Works.", json!({"type": "object"}), work);
    let agent = Agent::builder("worker").system_prompt("You work.").model("scripted");
    // The slow call and one of the others at a time.
    let agent = agent.tool(work).tool_concurrency(2).build().unwrap();
    let calls = Reply::calls((0..=OTHERS).map(|_| ("work", json!({}))));
    let settings = Settings {
        store: Some(Arc::new(store)),
        streams: Some(Arc::new(memory.clone())),
        llm: Some(Arc::new(ScriptedLlm::new([calls, Reply::text("So.")]))),
        ..Settings::default()
    };
    let runtime = in_work_items(settings, Redelivery::Never);
    let options = ExecuteOptions::default().session("s");
    let handle = runtime.execute(agent.erased(), "go".into(), options).await.unwrap();

    tries[0].reached().await;
    for (index, other) in others.iter().enumerate() {
        other.reached().await;
        tries[index].open();
        tries[index + 1].reached().await;
        other.open();
    }
    tries[OTHERS].open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let session = load(&memory, &SessionId::from("s")).await.unwrap();
    assert_eq!(session.usage().tool_calls, OTHERS as u64 + 1);
}
