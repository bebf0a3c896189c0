//! Shutting down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::{AgentServer, Limits};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{World, WorldBuilder, agent};

fn start(session: &str) -> serde_json::Value {
    json!({ "sessionId": session, "agentType": "clerk", "message": "Go!" })
}

#[tokio::test]
async fn a_hundred_open_streams_do_not_delay_the_shutdown_and_none_ends_cleanly() {
    let gate = Gate::new();
    let store = MemoryStore::new();
    let model = ScriptedLlm::new([Reply::text("Done.").at_gate(&gate)]);
    let mut world = WorldBuilder::new().serve(store.clone(), model).await;
    let client = world.client("ann");
    client.post("/start", start("talk")).await.expect(202);
    gate.reached().await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        let mut stream = client.events("/sse?sessionId=talk").await;
        stream.until("run_started").await;
        streams.push(stream);
    }
    let started = Instant::now();
    world.stopped().await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    for mut stream in streams {
        while let Some(block) = stream.next_block().await.transpose() {
            // A clean end would be a complete answer for some clients.
            if block.is_err() {
                break;
            }
        }
        assert!(stream.is_broken());
    }
    // The lease was released, so another instance takes the run over at once.
    let registry = AgentRegistry::default();
    registry.register(&agent()).unwrap();
    let model = ScriptedLlm::new([Reply::text("Done.")]);
    let other = LocalRuntime::builder().store(store).llm(model).registry(registry).build().unwrap();
    let recovered = other.recover().await.unwrap();
    assert_eq!(recovered.len(), 1);
    recovered[0].result().await.unwrap();
}

#[tokio::test]
async fn a_server_that_shuts_down_takes_no_runs_and_is_not_ready() {
    let world = World::new(ScriptedLlm::new([Reply::text("Done.")])).await;
    let client = world.client("ann");
    let mut first = start("talk");
    first["runId"] = "run-1".into();
    client.post("/start", first.clone()).await.expect(202);
    client.events("/sse?sessionId=talk").await.rest().await;
    // The listener is still served, as it is until the shutdown is complete.
    world.server.shutdown().await;
    for response in [
        client.post("/start", start("talk")).await,
        // The executor is closed as well.
        client.post("/start", first).await,
        client.post("/resume", json!({ "sessionId": "talk" })).await,
        client.post("/fork", json!({ "sessionId": "talk" })).await,
        client.get("/health/ready").await,
        client.get("/sse?sessionId=talk").await,
    ] {
        response.expect_error(503, "server_stopping");
        assert_eq!(response.header("retry-after"), Some("5"));
    }
    world.stranger().get("/health/live").await.expect(200);
    assert_eq!(client.get("/status?sessionId=talk").await.expect(200)["status"], "completed");
    world.server.shutdown().await;
}

#[tokio::test]
async fn a_server_without_authentication_is_only_for_its_own_machine() {
    let store = MemoryStore::new();
    let model = ScriptedLlm::new([]);
    let runtime = LocalRuntime::builder().store(store.clone()).llm(model).build().unwrap();
    let runtime: Arc<dyn AgentExecutor> = Arc::new(runtime);
    let registry = AgentRegistry::default();
    let server = AgentServer::builder(runtime, registry, store).allow_unauthenticated();
    let server = server.build().unwrap();
    let anywhere = || TcpListener::bind("0.0.0.0:0");
    let refused = server.serve(anywhere().await.unwrap(), async {}).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    let forced = server.clone().accept_unauthenticated_from_anywhere();
    forced.serve(anywhere().await.unwrap(), async {}).await.unwrap();
}

#[tokio::test]
async fn limits_without_an_end_are_possible() {
    let mut limits = Limits::default();
    limits.body_timeout = Duration::MAX;
    limits.head_timeout = Duration::MAX;
    limits.stall_timeout = Duration::MAX;
    limits.shutdown = Duration::MAX;
    let builder = WorldBuilder { limits, sweep: Some(Duration::MAX), ..WorldBuilder::new() };
    let model = ScriptedLlm::new([Reply::text("Done.")]);
    let mut world = builder.serve(MemoryStore::new(), model).await;
    let client = world.client("ann");
    client.post("/start", start("talk")).await.expect(202);
    let events = client.events("/sse?sessionId=talk").await.rest().await;
    assert_eq!(events.last().unwrap().kind(), "end");
    world.stopped().await;
}
