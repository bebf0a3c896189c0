//! The stream of a run that has taken over from a run without chunks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::{Chunk, ChunkKind, StreamManager as _};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use serde_json::json;

fn agent() -> AnyAgent {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    agent.build().unwrap().erased()
}

fn runtime(sessions: &MemoryStore, streams: &MemoryStore, reply: Reply) -> LocalRuntime {
    runtime_with(Arc::new(sessions.clone()), streams, ScriptedLlm::new([reply]))
}

fn runtime_with(
    sessions: Arc<dyn StateStore>,
    streams: &MemoryStore,
    llm: impl LlmAdapter,
) -> LocalRuntime {
    LocalRuntime::builder()
        .state_store(sessions)
        .stream_manager(Arc::new(streams.clone()))
        .llm(llm)
        .lease(Duration::from_secs(60))
        .build()
        .unwrap()
}

/// The stream gets the missing chunks of the crashed run first, and the stream of the later run does not end at them.
#[tokio::test]
async fn the_late_start_of_a_crashed_run_does_not_end_the_stream_of_its_successor() {
    let (sessions, streams, never) = (MemoryStore::new(), MemoryStore::new(), Gate::new());
    let session = SessionId::from("s");
    // The chunks of the first run are lost.
    let lost = MemoryStore::new();
    let crashed = runtime(&sessions, &lost, Reply::text("Once").at_gate(&never));
    let options = ExecuteOptions::default().session("s");
    let first = crashed.execute(agent(), "A story.".into(), options).await.unwrap();
    never.reached().await;
    sessions.renew(&session, first.run(), Duration::ZERO).await.unwrap();

    let next = runtime(&sessions, &streams, Reply::text("Once upon a time."));
    let second = next.resume(agent(), &session, ResumeOptions::default()).await.unwrap();
    let chunks: Vec<_> = within(second.stream().await.unwrap().collect::<Vec<_>>()).await;
    let chunks: Vec<_> = chunks.into_iter().map(|stored| stored.unwrap().chunk).collect();
    let of = |run: &str| chunks.iter().filter(|chunk| chunk.run.as_str() == run).count();
    assert!(of(first.run().as_str()) > 0, "the start of the first run is shown");
    let last = chunks.last().unwrap();
    assert_eq!(last.run, *second.run());
    assert!(matches!(last.kind, ChunkKind::RunEnded { .. }), "{:?}", last.kind);
}

/// A process crashes after it has recorded the end of a sub-agent and before it shows it. The process that takes over
/// shows it before the result of the call.
#[tokio::test]
async fn the_end_of_a_child_of_a_crashed_process_is_shown() {
    let (sessions, streams) = (MemoryStore::new(), MemoryStore::new());
    let (ended, answered) = (Gate::new(), Gate::new());
    let session = SessionId::from("s");
    let helper = Agent::builder("helper").system_prompt("You help.").model("scripted");
    let helper = helper.description("Helps.").output::<u32>().build().unwrap();
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    let boss = boss.sub_agent(&helper).build().unwrap().erased();
    let held = FaultStore::new(Arc::new(sessions.clone()))
        .with_fault("\"run_ended\"", Fault::HoldAfter(ended.clone()))
        .with_fault("\"outcome\":{\"success\"", Fault::HoldBefore(answered.clone()));
    let asks = Reply::tool_call("subagent__helper", json!({"message": "Help."}));
    let llm = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([asks, Reply::text("Done.")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!(7))]));
    let crashed = runtime_with(Arc::new(held), &streams, llm.clone());
    let options = ExecuteOptions::default().session("s");
    let first = crashed.execute(Arc::clone(&boss), "Ask.".into(), options).await.unwrap();
    ended.reached().await;
    answered.reached().await;
    sessions.renew(&session, first.run(), Duration::ZERO).await.unwrap();

    let next = runtime_with(Arc::new(sessions.clone()), &streams, llm);
    let second = next.resume(boss, &session, ResumeOptions::default()).await.unwrap();
    within(second.result()).await.unwrap();
    let ends = |chunk: &Chunk| matches!(chunk.kind, ChunkKind::RunEnded { .. });
    let mut shown = streams.read(&session, 0).await.unwrap();
    let mut chunks: Vec<Arc<Chunk>> = Vec::new();
    while !chunks.last().is_some_and(|chunk| ends(chunk) && chunk.session == session) {
        chunks.push(within(shown.next()).await.unwrap().unwrap().chunk);
    }
    let child_end = chunks.iter().position(|chunk| chunk.session != session && ends(chunk));
    let result = chunks.iter().position(|chunk| matches!(chunk.kind, ChunkKind::ToolEnd { .. }));
    assert!(child_end.is_some() && child_end < result, "{child_end:?}, {result:?}");
}
