//! Limits on streams, runs, sessions and rates.

use helix_agents_server::{Limits, Rate};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::{Value, json};

use crate::support::{Client, Response, World, WorldBuilder};

async fn world(model: ScriptedLlm, change: impl FnOnce(&mut Limits)) -> World {
    let mut limits = Limits::default();
    change(&mut limits);
    WorldBuilder { limits, ..WorldBuilder::new() }.serve(MemoryStore::new(), model).await
}

fn start(session: &str) -> Value {
    json!({ "sessionId": session, "agentType": "clerk", "message": "Go!" })
}

#[track_caller]
fn expect_limited(response: &Response) {
    response.expect_error(429, "rate_limited");
    let delay: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&delay), "{delay}");
}

/// Sends requests until one is accepted.
async fn until_accepted(client: &Client, path: &str, body: &Value) -> Response {
    loop {
        let response = client.post(path, body.clone()).await;
        if response.status != 429 {
            return response;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn streams_of_one_principal_and_of_all_are_limited() {
    let gate = Gate::new();
    let model = ScriptedLlm::new([Reply::text("x").at_gate(&gate)]);
    let change = |limits: &mut Limits| (limits.streams_per_principal, limits.streams) = (2, 3);
    let world = world(model, change).await;
    let (ann, bob, eve) = (world.client("ann"), world.client("bob"), world.client("eve"));
    ann.post("/start", start("a")).await.expect(202);
    bob.post("/start", start("b")).await.expect(202);
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(ann.events("/sse?sessionId=a").await);
    }
    expect_limited(&ann.get("/sse?sessionId=a").await);
    streams.push(bob.events("/sse?sessionId=b").await);
    expect_limited(&eve.get("/sse?sessionId=b").await);
    // A stream that has ended makes room for another one.
    gate.open();
    for stream in streams {
        stream.rest().await;
    }
    loop {
        if let 200 = ann.get("/sse?sessionId=a&from=1000").await.status.as_u16() {
            break;
        }
    }
}

#[tokio::test]
async fn runs_in_progress_are_limited_and_attaching_takes_no_room() {
    let gate = Gate::new();
    let model = ScriptedLlm::new([Reply::text("x").at_gate(&gate)]);
    let world = world(model, |limits| limits.runs_per_principal = 2).await;
    let ann = world.client("ann");
    let mut first = start("a");
    first["runId"] = "run-1".into();
    for _ in 0..5 {
        ann.post("/start", first.clone()).await.expect(202);
    }
    ann.post("/start", start("b")).await.expect(202);
    expect_limited(&ann.post("/start", start("c")).await);
    world.client("bob").post("/start", start("d")).await.expect(202);
    gate.open();
    until_accepted(&ann, "/start", &start("c")).await.expect(202);
}

#[tokio::test]
async fn a_repeated_start_is_accepted_at_the_limit() {
    let gate = Gate::new();
    let world = world(ScriptedLlm::new([Reply::text("x").at_gate(&gate)]), |limits| {
        limits.runs_per_principal = 1;
        limits.starts = Some(Rate::new(1, 1));
    })
    .await;
    let ann = world.client("ann");
    let mut first = start("a");
    first["runId"] = "run-1".into();
    let started = ann.post("/start", first.clone()).await.expect(202);
    expect_limited(&ann.post("/start", start("b")).await);
    for _ in 0..3 {
        assert_eq!(ann.post("/start", first.clone()).await.expect(202), started);
    }
    gate.open();
}

#[tokio::test]
async fn sessions_are_limited_and_deleting_one_makes_room() {
    let world = world(ScriptedLlm::new([Reply::text("x"), Reply::text("y")]), |limits| {
        limits.sessions_per_principal = Some(2);
    })
    .await;
    let (ann, bob) = (world.client("ann"), world.client("bob"));
    bob.post("/start", start("b")).await.expect(202);
    for session in ["a1", "a2"] {
        ann.post("/start", start(session)).await.expect(202);
        ann.events(&format!("/sse?sessionId={session}")).await.rest().await;
    }
    let refused = ann.post("/start", start("a3")).await;
    refused.expect_error(429, "session_limit");
    assert_eq!(refused.header("retry-after"), None, "waiting does not help");
    let fork = json!({ "sessionId": "a1" });
    ann.post("/fork", fork.clone()).await.expect_error(429, "session_limit");
    bob.events("/sse?sessionId=b").await.rest().await;
    // The fork of an operator counts for the owner of the original.
    let eve = world.client("eve");
    eve.post("/fork", fork).await.expect_error(429, "session_limit");
    for session in ["b", "b1"] {
        let fork = json!({ "sessionId": "b", "newSessionId": format!("{session}-copy") });
        eve.post("/fork", fork).await.expect(if session == "b" { 201 } else { 429 });
    }
    // An existing session continues.
    ann.post("/start", start("a1")).await.expect(202);
    ann.delete("/sessions/a2").await.expect(204);
    ann.post("/start", start("a3")).await.expect(202);
}

#[tokio::test]
async fn rates_are_limited_for_each_principal() {
    let world = world(ScriptedLlm::new([]), |limits| {
        limits.requests = Some(Rate::new(1, 5));
        limits.starts = Some(Rate::new(1, 2));
    })
    .await;
    let (ann, bob) = (world.client("ann"), world.client("bob"));
    let unknown = json!({ "agentType": "baker", "message": "x" });
    for _ in 0..2 {
        ann.post("/start", unknown.clone()).await.expect_error(404, "agent_not_found");
    }
    expect_limited(&ann.post("/start", unknown.clone()).await);
    for _ in 0..2 {
        ann.get("/agents").await.expect(200);
    }
    expect_limited(&ann.get("/agents").await);
    bob.get("/agents").await.expect(200);
}
