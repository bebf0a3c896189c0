//! The times of spans whose events are appended once per step.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_core::agent::Agent;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::session::{Durability, RunStatus};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_store_memory::{MemoryOptions, MemoryStore};
use helix_agents_telemetry::{SpanOptions, session_spans};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use crate::clock::ManualClock;
use crate::support::{DESK, Word, named};

/// The quick call ends 50 ms before the slow one, although the same append records both.
#[tokio::test]
async fn calls_of_a_step_have_their_own_ends() {
    let gate = Gate::new();
    let held = gate.clone();
    let quick = Tool::function("quick", "Is quick.", |_: Word, _: ToolContext| async {
        Ok::<_, ToolError>("done".to_owned())
    });
    let slow = Tool::function("slow", "Is slow.", move |_: Word, _: ToolContext| {
        let held = held.clone();
        async move {
            held.pass().await;
            Ok::<_, ToolError>("done".to_owned())
        }
    });
    let agent = Agent::builder("clerk").system_prompt("You serve.").model("scripted");
    let agent = agent.tool(quick).tool(slow).build().unwrap();
    let input = json!({ "word": "now" });
    let script = [Reply::calls([("quick", input.clone()), ("slow", input)]), Reply::text("Done.")];
    let clock = Arc::new(ManualClock::default());
    let store =
        MemoryStore::with_clock(MemoryOptions::default(), Arc::<ManualClock>::clone(&clock));
    let builder = LocalRuntime::builder().store(store.clone()).llm(ScriptedLlm::new(script));
    let builder = builder.clock(Arc::<ManualClock>::clone(&clock));
    let runtime = builder.durability(Durability::PerStep).build().unwrap();
    let options = ExecuteOptions::default().session(DESK);
    let run = runtime.execute(agent.erased(), "go".into(), options).await.unwrap();
    let mut stream = run.stream().await.unwrap();
    let is_end =
        |kind: &ChunkKind| matches!(kind, ChunkKind::ToolEnd { tool, .. } if **tool == *"quick");
    while !is_end(&stream.next().await.unwrap().unwrap().chunk.kind) {}
    clock.advance(Duration::from_millis(50));
    gate.open();
    assert_eq!(run.result().await.unwrap().status, RunStatus::Completed);
    let spans = session_spans(&store, &DESK.into(), &SpanOptions::default()).await.unwrap();
    let end = |name: &str| named(&spans, name).end;
    assert_eq!(end("execute_tool quick"), Timestamp(1_700_000_000_000));
    assert_eq!(end("execute_tool slow"), Timestamp(1_700_000_000_050));
}
