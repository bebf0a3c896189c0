//! The routes below `/sessions`, and `/fork`, `/messages`, `/agents`, `/health`.

use bytes::Bytes;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{
    Append, Guard, LeaseChange, NewSession, Position, SessionStatus, StateStore as _, Summary,
};
use helix_agents_server::OWNER_TAG;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::{Value, json};

use crate::support::{Client, World, WorldBuilder};

async fn run(client: &Client, session: &str, message: &str) {
    let request = json!({ "sessionId": session, "agentType": "clerk", "message": message });
    client.post("/start", request).await.expect(202);
    client.events(&format!("/sse?sessionId={session}")).await.rest().await;
}

fn replies() -> ScriptedLlm {
    ScriptedLlm::new([Reply::text("One."), Reply::text("Two.")])
}

fn ids(list: &Value) -> Vec<&str> {
    let sessions = list["sessions"].as_array().unwrap().iter();
    sessions.map(|session| session["sessionId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_list_has_the_callers_sessions_and_continues() {
    let world = World::new(replies()).await;
    let (ann, bob, eve) = (world.client("ann"), world.client("bob"), world.client("eve"));
    for index in 0..5 {
        run(&ann, &format!("a{index}"), "Hello!").await;
        run(&bob, &format!("b{index}"), "Hello!").await;
    }
    let mut found = Vec::new();
    let mut path = "/sessions?limit=2".to_owned();
    loop {
        let list = ann.get(&path).await.expect(200);
        found.extend(ids(&list).into_iter().map(str::to_owned));
        let Some(next) = list["next"].as_str() else { break };
        path = format!("/sessions?limit=2&after={next}");
    }
    found.sort();
    assert_eq!(found, ["a0", "a1", "a2", "a3", "a4"]);
    assert_eq!(ids(&eve.get("/sessions?limit=100").await.expect(200)).len(), 10);
    assert_eq!(ids(&ann.get("/sessions?status=failed").await.expect(200)), Vec::<&str>::new());
    assert_eq!(ids(&ann.get("/sessions?agent=clerk&status=completed").await.expect(200)).len(), 5);
    assert_eq!(ids(&ann.get("/sessions?pending=1").await.expect(200)), Vec::<&str>::new());
    ann.get("/sessions?after=b0").await.expect_error(400, "input_invalid");
    ann.get("/sessions?status=odd").await.expect_error(400, "input_invalid");
    ann.get("/sessions?unknown=1").await.expect_error(400, "input_invalid");
}

/// Creates a session of an owner, with a log that is not read.
async fn create(store: &MemoryStore, session: SessionId, owner: &str) {
    let first = Append {
        session: session.clone(),
        expected: Position::start(),
        id: "first".into(),
        run: None,
        schema: 1,
        count: 1,
        body: Bytes::new(),
        summary: Some(Summary {
            status: SessionStatus::Completed,
            run: None,
            runtime: "local".into(),
            pending: 0,
            wake_at: None,
        }),
        usage: None,
        lease: LeaseChange::Clear,
        guard: Guard::None,
    };
    let tags = [(OWNER_TAG.to_owned(), owner.to_owned())].into();
    let new = NewSession { agent: "clerk".into(), root: session, parent: None, tags };
    store.create_session(new, first).await.unwrap();
}

/// However many newer sessions of others there are, each part of a list has as many sessions as requested.
#[tokio::test]
async fn a_list_skips_no_sessions_of_others() {
    let store = MemoryStore::new();
    for index in 0..3 {
        create(&store, format!("a{index}").into(), "ann").await;
    }
    for index in 0..20_001 {
        create(&store, format!("b{index}").into(), "bob").await;
    }
    let world = WorldBuilder::new().serve(store, replies()).await;
    let ann = world.client("ann");
    let first = ann.get("/sessions?limit=2").await.expect(200);
    assert_eq!(ids(&first), ["a2", "a1"]);
    let next = first["next"].as_str().unwrap();
    let rest = ann.get(&format!("/sessions?limit=2&after={next}")).await.expect(200);
    assert_eq!((ids(&rest), &rest["next"]), (vec!["a0"], &json!(null)));
}

#[tokio::test]
async fn a_session_is_shown_and_its_stream_continues_from_there() {
    let world = World::new(replies()).await;
    let client = world.client("ann");
    run(&client, "talk", "Hello!").await;
    let session = client.get("/sessions/talk").await.expect(200);
    assert_eq!(session["messages"][0], json!({ "role": "user", "content": "Hello!" }));
    assert_eq!(session["messages"][1]["content"], "One.");
    assert_eq!((&session["live"], &session["status"]), (&json!([]), &json!("completed")));
    let next = session["nextSeq"].as_u64().unwrap();
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "And?" });
    client.post("/start", request).await.expect(202);
    let events = client.events(&format!("/sse?sessionId=talk&from={next}")).await.rest().await;
    assert_eq!(events[0].kind(), "run_started");
    assert_eq!(events[0].id, Some(next));
}

#[tokio::test]
async fn a_log_is_read_in_parts() {
    let world = World::new(replies()).await;
    let client = world.client("ann");
    run(&client, "talk", "Hello!").await;
    client.get("/sessions/talk/log").await.expect_error(403, "forbidden");
    let operator = world.client("eve");
    let whole = operator.get("/sessions/talk/log").await.expect(200);
    assert!(whole.get("next").is_none());
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let path = format!("/sessions/talk/log?limit=1&after={after}");
        let part = operator.get(&path).await.expect(200);
        events.extend(part["events"].as_array().unwrap().clone());
        match part["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(json!(events), whole["events"]);
    assert_eq!(events[0]["seq"], 1);
    let checkpoints = client.get("/sessions/talk/checkpoints").await.expect(200);
    assert_eq!(checkpoints["checkpoints"][0]["step"], 1);
    operator.get("/sessions/none/log").await.expect_error(404, "session_not_found");
    client.get("/sessions/none/checkpoints").await.expect_error(404, "session_not_found");
    operator.get("/sessions/talk/log?limit=x").await.expect_error(400, "input_invalid");
}

#[tokio::test]
async fn a_list_continues_where_a_session_was_deleted_and_with_any_id() {
    let world = World::new(ScriptedLlm::new([Reply::text("One.")])).await;
    let ann = world.client("ann");
    for session in ["~5", "a.1", "b", "c"] {
        run(&ann, session, "Hello!").await;
    }
    let whole = ann.get("/sessions").await.expect(200);
    let whole: Vec<_> = ids(&whole).into_iter().map(str::to_owned).collect();
    let (mut found, mut path) = (Vec::new(), "/sessions?limit=1".to_owned());
    loop {
        let list = ann.get(&path).await.expect(200);
        let session = ids(&list)[0].to_owned();
        ann.delete(&format!("/sessions/{session}")).await.expect(204);
        found.push(session);
        let Some(next) = list["next"].as_str() else { break };
        path = format!("/sessions?limit=1&after={next}");
    }
    assert_eq!((found.len(), &found), (4, &whole));
}

#[tokio::test]
async fn large_sessions_and_logs_are_read_in_parts() {
    const TURNS: usize = 7;
    let replies = (0..TURNS).map(|_| Reply::text("Noted."));
    let world = World::new(ScriptedLlm::new(replies)).await;
    let (client, operator) = (world.client("ann"), world.client("eve"));
    for turn in 0..TURNS {
        run(&client, "talk", &format!("{turn}{}", "x".repeat(700_000))).await;
    }
    let shown = client.get("/sessions/talk").await;
    assert!(shown.body.len() < 4_500_000, "{}", shown.body.len());
    let shown = shown.expect(200);
    let omitted = shown["omittedMessages"].as_u64().unwrap();
    let messages = shown["messages"].as_array().unwrap();
    assert_eq!(usize::try_from(omitted).unwrap() + messages.len(), 2 * TURNS);
    assert_eq!(messages.last().unwrap()["content"], "Noted.");
    assert!(shown.get("omittedRuns").is_none());

    let (mut seqs, mut parts, mut after) = (Vec::new(), 0, 0);
    loop {
        let path = format!("/sessions/talk/log?limit=1000&after={after}");
        let part = operator.get(&path).await;
        assert!(part.body.len() < 2_000_000, "{}", part.body.len());
        let part = part.expect(200);
        let events = part["events"].as_array().unwrap();
        assert!(!events.is_empty());
        seqs.extend(events.iter().map(|event| event["seq"].as_u64().unwrap()));
        parts += 1;
        match part["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert!(parts > 4, "{parts}");
    assert!(seqs.iter().zip(1..).all(|(seq, expected)| *seq == expected), "{seqs:?}");
    let version = client.get("/status?sessionId=talk").await.expect(200)["version"].clone();
    assert_eq!(json!(seqs.last()), version);
}

#[tokio::test]
async fn a_fork_belongs_to_the_owner_of_the_original() {
    let world = World::new(replies()).await;
    let (ann, bob, eve) = (world.client("ann"), world.client("bob"), world.client("eve"));
    run(&ann, "talk", "Hello!").await;
    run(&bob, "taken", "Hello!").await;
    let fork = |client: &Client, new: &str| {
        let client = client.clone();
        let request = json!({ "sessionId": "talk", "newSessionId": new });
        async move { client.post("/fork", request).await }
    };
    assert_eq!(fork(&ann, "copy").await.expect(201), json!({ "sessionId": "copy" }));
    fork(&ann, "copy").await.expect_error(409, "session_exists");
    fork(&ann, "taken").await.expect_error(404, "session_not_found");
    fork(&bob, "mine").await.expect_error(404, "session_not_found");
    // The operator forks for the owner.
    fork(&eve, "second").await.expect(201);
    assert_eq!(ids(&ann.get("/sessions").await.expect(200)).len(), 3);
    let request = json!({ "sessionId": "talk", "checkpoint": 999 });
    ann.post("/fork", request).await.expect_error(404, "checkpoint_not_found");
    run(&ann, "copy", "And?").await;
    let status = ann.get("/status?sessionId=copy").await.expect(200);
    assert_eq!(status["run"]["output"], "Two.");
}

#[tokio::test]
async fn a_queued_message_waits_for_the_next_run_and_is_queued_once() {
    let world = World::new(replies()).await;
    let client = world.client("ann");
    run(&client, "talk", "Hello!").await;
    let request = json!({ "sessionId": "talk", "message": "By the way.", "requestId": "m1" });
    client.post("/messages", request.clone()).await.expect(202);
    client.post("/messages", request).await.expect(202);
    client.post("/messages", json!({ "sessionId": "talk", "message": "Also." })).await.expect(202);
    let none = json!({ "sessionId": "none", "message": "x" });
    client.post("/messages", none).await.expect_error(404, "session_not_found");
    run(&client, "talk", "Well?").await;
    let seen = format!("{:?}", world.model.seen()[1].messages);
    assert_eq!((seen.matches("By the way.").count(), seen.matches("Also.").count()), (1, 1));
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let world = World::new(replies()).await;
    let client = world.client("ann");
    run(&client, "talk", "Hello!").await;
    let deleted = client.delete("/sessions/talk").await;
    assert_eq!((deleted.status.as_u16(), deleted.body.len()), (204, 0));
    client.delete("/sessions/talk").await.expect_error(404, "session_not_found");
    client.get("/sessions/talk").await.expect_error(404, "session_not_found");
    client.get("/sse?sessionId=talk").await.expect_error(404, "session_not_found");
}

#[tokio::test]
async fn the_server_describes_itself() {
    let world = World::new(replies()).await;
    let client = world.client("ann");
    let agents = client.get("/agents").await.expect(200);
    assert_eq!(agents, json!({ "agents": [{ "agentType": "clerk" }] }));
    assert_eq!(client.get("/openapi.json").await.expect(200)["openapi"], "3.1.0");
    assert_eq!(client.get("/health/ready").await.expect(200), json!({ "status": "ok" }));
    assert_eq!(world.stranger().get("/health/live").await.expect(200), json!({ "status": "ok" }));
    client.get("/nothing").await.expect_error(404, "route_not_found");
    let wrong = client.get("/start").await;
    wrong.expect_error(405, "method_not_allowed");
    assert_eq!(wrong.header("allow"), Some("POST"));
    let wrong = client.post("/sessions/talk", json!({})).await;
    wrong.expect_error(405, "method_not_allowed");
    let allowed: std::collections::BTreeSet<_> =
        wrong.header("allow").unwrap().split(',').collect();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD"].into());
    let named = client.clone().header("x-request-id", "req-7").get("/agents").await;
    assert_eq!(named.header("x-request-id"), Some("req-7"));
    let odd = client.header("x-request-id", "a b").get("/agents").await;
    assert_ne!(odd.header("x-request-id"), Some("a b"));
}
