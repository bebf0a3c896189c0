//! The stream of a run that has taken over from a run without chunks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::store::StateStore as _;
use helix_agents_core::stream::ChunkKind;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};

fn agent() -> AnyAgent {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    agent.build().unwrap().erased()
}

fn runtime(sessions: &MemoryStore, streams: &MemoryStore, reply: Reply) -> LocalRuntime {
    LocalRuntime::builder()
        .state_store(Arc::new(sessions.clone()))
        .stream_manager(Arc::new(streams.clone()))
        .llm(ScriptedLlm::new([reply]))
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
