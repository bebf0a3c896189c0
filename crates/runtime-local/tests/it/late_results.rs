//! The stream of a call whose result an earlier owner records while the call runs again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::{ChunkKind, StreamManager as _};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::{Value, json};

const SESSION: &str = "late";

fn passing(name: &str, gate: &Gate) -> Tool {
    let gate = gate.clone();
    let pass = move |_: Value, _: ToolContext| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(json!("done"))
        }
    };
    Tool::dynamic(name, "Works.", json!({"type": "object"}), pass)
}

/// Returns an agent that calls three tools at once. Each tool waits at its gate.
fn agent(gates: [&Gate; 3]) -> AnyAgent {
    let agent = Agent::builder("worker").system_prompt("You work.").model("scripted");
    let names = ["one", "two", "three"];
    agent
        .tools(names.iter().zip(gates).map(|(name, gate)| passing(name, gate)))
        .build()
        .unwrap()
        .erased()
}

fn runtime(store: impl StateStore + 'static, memory: &MemoryStore) -> LocalRuntime {
    let calls = Reply::calls([("one", json!({})), ("two", json!({})), ("three", json!({}))]);
    LocalRuntime::builder()
        .state_store(Arc::new(store))
        .stream_manager(Arc::new(memory.clone()))
        .llm(ScriptedLlm::new([calls, Reply::text("Done.")]))
        .lease(Duration::from_secs(60))
        .build()
        .unwrap()
}

/// Returns the starts and ends of calls in the stream, as a late reader sees them.
async fn shown_calls(memory: &MemoryStore) -> Vec<String> {
    let stream = SessionId::from(SESSION);
    let last = memory.info(&stream).await.unwrap().last_seq;
    let mut reader = memory.read(&stream, 1).await.unwrap();
    let mut shown = Vec::new();
    loop {
        let stored = within(reader.next()).await.unwrap().unwrap();
        match &stored.chunk.kind {
            ChunkKind::ToolStart { call, .. } => shown.push(format!("{call} starts")),
            ChunkKind::ToolEnd { call, .. } => shown.push(format!("{call} ends")),
            _ => {}
        }
        if stored.seq == last {
            shown.sort();
            return shown;
        }
    }
}

/// The successor learns of the late result while its own execution of the call is still running.
#[tokio::test]
async fn a_late_result_of_a_call_that_runs_again_is_shown_once() {
    let (memory, session) = (MemoryStore::new(), SessionId::from(SESSION));
    let (append, never, opened) = (Gate::new(), Gate::new(), Gate::opened());
    let store = FaultStore::new(Arc::new(memory.clone()))
        .with_fault(r#""tool_finished":{"call":"1.0""#, Fault::HoldBefore(append.clone()));
    let stalled = runtime(store, &memory);
    let agent_of_stalled = agent([&opened, &never, &never]);
    let options = ExecuteOptions::default().session(SESSION);
    let first = stalled.execute(agent_of_stalled, "go".into(), options).await.unwrap();
    append.reached().await;
    memory.renew(&session, first.run(), Duration::ZERO).await.unwrap();

    let (one, two, three) = (Gate::new(), Gate::new(), Gate::new());
    let (next, agent) = (runtime(memory.clone(), &memory), agent([&one, &two, &three]));
    let second = next.resume(agent, &session, ResumeOptions::default()).await.unwrap();
    one.reached().await;
    append.open();
    assert!(within(first.result()).await.is_err());
    // The next append of the successor meets the late result.
    two.open();
    let called = |log: &[String], name: &str| log.iter().any(|line| line == name);
    while !called(&shown_calls(&memory).await, "1.0 ends") {
        tokio::task::yield_now().await;
    }
    one.open();
    three.open();
    assert_eq!(within(second.result()).await.unwrap().status, RunStatus::Completed);
    within(next.shutdown()).await;
    let calls = ["1.0 ends", "1.0 starts", "1.1 ends", "1.1 starts", "1.2 ends", "1.2 starts"];
    assert_eq!(shown_calls(&memory).await, calls);
}
