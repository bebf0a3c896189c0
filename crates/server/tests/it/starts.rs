//! `POST /start` and `POST /resume`.

use futures_util::future::join_all;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::{Value, json};

use crate::support::{World, WorldBuilder};

fn start(message: &str) -> Value {
    json!({ "agentType": "clerk", "message": message })
}

async fn ended(world: &World, session: &str) -> Value {
    let client = world.client("ann");
    let events = client.events(&format!("/sse?sessionId={session}")).await.rest().await;
    assert_eq!(events.last().unwrap().kind(), "end");
    client.get(&format!("/status?sessionId={session}")).await.expect(200)
}

#[tokio::test]
async fn a_start_runs_the_agent_and_the_status_has_its_output() {
    let world = World::new(ScriptedLlm::new([Reply::text("Hello Ann.")])).await;
    let response = world.client("ann").post("/start", start("Hello!")).await;
    let started = response.expect(202);
    let session = started["sessionId"].as_str().unwrap();
    assert_eq!(started["streamId"], session);
    assert_eq!(response.header("x-session-id"), Some(session));
    assert_eq!(response.header("x-run-id"), started["runId"].as_str());
    let status = ended(&world, session).await;
    assert_eq!(status["status"], "completed");
    assert_eq!(status["run"]["output"], "Hello Ann.");
    assert_eq!(status["run"]["runId"], started["runId"]);
    assert_eq!(status["agentType"], "clerk");
    assert_eq!(status["canResume"], false);
    assert_eq!(status["usage"]["steps"], 1);
    assert!(status["lastSeq"].as_u64().unwrap() > 2);
}

#[tokio::test]
async fn a_start_works_on_a_file_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("server.db")).await.unwrap();
    let world =
        WorldBuilder::new().serve(store, ScriptedLlm::new([Reply::text("Hello Ann.")])).await;
    let started = world.client("ann").post("/start", start("Hello!")).await.expect(202);
    let status = ended(&world, started["sessionId"].as_str().unwrap()).await;
    assert_eq!(status["run"]["output"], "Hello Ann.");
    world
        .client("bob")
        .get(&format!("/sessions/{}", started["sessionId"].as_str().unwrap()))
        .await
        .expect_error(404, "session_not_found");
}

#[tokio::test]
async fn a_repeated_start_with_a_run_id_starts_one_run() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("Once.").at_gate(&gate)])).await;
    let mut request = start("Hello!");
    request["runId"] = "run-7".into();
    let client = world.client("ann");
    let responses = join_all((0..8).map(|_| client.post("/start", request.clone()))).await;
    let first = responses[0].expect(202);
    assert_eq!(first["runId"], "run-7");
    for response in &responses {
        assert_eq!(response.expect(202), first);
    }
    gate.open();
    let session = first["sessionId"].as_str().unwrap();
    ended(&world, session).await;
    // A repetition after the end is no second run either.
    assert_eq!(client.post("/start", request.clone()).await.expect(202), first);
    assert_eq!(ended(&world, session).await["run"]["output"], "Once.");
    assert_eq!(world.model.calls(), 1);
    // The same run id of another user is another run.
    let other = world.client("bob").post("/start", request).await.expect(202);
    assert_ne!(other["sessionId"], first["sessionId"]);
}

#[tokio::test]
async fn a_start_continues_a_completed_session_and_not_a_running_one() {
    let gate = Gate::new();
    let replies = [Reply::text("One."), Reply::text("Two.").at_gate(&gate)];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client("ann");
    let mut request = start("First.");
    request["sessionId"] = "talk".into();
    request["metadata"] = json!({ "topic": "greetings" });
    client.post("/start", request.clone()).await.expect(202);
    assert_eq!(ended(&world, "talk").await["metadata"]["topic"], "greetings");
    for (topic, count) in [("greetings", 1), ("news", 0)] {
        let path = format!("/sessions?metadata=%7B%22topic%22:%22{topic}%22%7D");
        let list = client.get(&path).await.expect(200);
        assert_eq!(list["sessions"].as_array().unwrap().len(), count, "{topic}");
    }
    client.get("/sessions?metadata=topic").await.expect_error(400, "input_invalid");
    client.post("/start", request.clone()).await.expect(202);
    gate.reached().await;
    client.post("/start", request).await.expect_error(409, "already_running");
    gate.open();
    let status = ended(&world, "talk").await;
    assert_eq!((&status["run"]["turn"], &status["run"]["output"]), (&json!(2), &json!("Two.")));
    assert_eq!((&status["runs"], &status["steps"]), (&json!(2), &json!(2)));
    assert_eq!(status["ownUsage"]["steps"], 2);
}

#[tokio::test]
async fn a_start_that_cannot_run_says_why() {
    let world = World::new(ScriptedLlm::new([])).await;
    let client = world.client("ann");
    let with = |member: &str, value: Value| {
        let mut request = start("Hello!");
        request[member] = value;
        client.post("/start", request)
    };
    with("agentType", "baker".into()).await.expect_error(404, "agent_not_found");
    with("sessionId", "a-sub-1".into()).await.expect_error(400, "id_invalid");
    with("sessionId", "".into()).await.expect_error(400, "id_invalid");
    with("runId", "a\u{7}".into()).await.expect_error(400, "id_invalid");
    with("message", "".into()).await.expect_error(400, "input_invalid");
    with("message", json!({ "content": "x", "hidden": true }))
        .await
        .expect_error(400, "input_invalid");
    with("metadata", json!({ "": "x" })).await.expect_error(400, "input_invalid");
    with("sessionID", "typo".into()).await.expect_error(400, "input_invalid");
    with("budget", json!({ "stepz": 1 })).await.expect_error(400, "input_invalid");
    assert_eq!(world.model.calls(), 0);
    let none = client.get("/sessions").await.expect(200);
    assert_eq!(none["sessions"], json!([]));
}

#[tokio::test]
async fn an_attachment_reaches_the_model() {
    let world = World::new(ScriptedLlm::new([Reply::text("A chart.")])).await;
    let attachment = json!({ "type": "image/png", "url": "https://example.com/chart.png" });
    let message = json!({ "content": "What is this?", "attachments": [attachment] });
    let mut request = start("");
    request["message"] = message;
    let started = world.client("ann").post("/start", request).await.expect(202);
    ended(&world, started["sessionId"].as_str().unwrap()).await;
    assert!(format!("{:?}", world.model.seen()[0].messages).contains("chart.png"));
}

#[tokio::test]
async fn a_budget_applies() {
    let world = World::new(ScriptedLlm::new([Reply::more_text("a"), Reply::text("b")])).await;
    let mut request = start("Go!");
    request["budget"] = json!({ "steps": 1 });
    let started = world.client("ann").post("/start", request).await.expect(202);
    let session = started["sessionId"].as_str().unwrap();
    let status = ended(&world, session).await;
    assert_eq!(status["run"]["error"]["code"], "budget_exceeded");
    let resume = json!({ "sessionId": session, "budget": { "steps": 5 } });
    world.client("ann").post("/resume", resume).await.expect(202);
    assert_eq!(ended(&world, session).await["run"]["output"], "b");
}

#[tokio::test]
async fn a_resume_of_a_session_that_is_complete_or_unknown_fails() {
    let world = World::new(ScriptedLlm::new([Reply::text("Done.")])).await;
    let client = world.client("ann");
    let mut request = start("Go!");
    request["sessionId"] = "done".into();
    client.post("/start", request).await.expect(202);
    ended(&world, "done").await;
    let resume = |session| client.post("/resume", json!({ "sessionId": session }));
    resume("done").await.expect_error(409, "nothing_to_resume");
    resume("unknown").await.expect_error(404, "session_not_found");
    resume("").await.expect_error(400, "id_invalid");
}

#[tokio::test]
async fn eight_resumes_start_one_run() {
    let replies = [Reply::tool_call("ask", json!({ "question": "Why?" })), Reply::text("I see.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client("ann");
    let mut request = start("Go!");
    request["sessionId"] = "talk".into();
    let started = client.post("/start", request).await.expect(202);
    ended(&world, "talk").await;
    let resume = json!({ "sessionId": "talk", "after": started["runId"] });
    client.post("/resume", resume.clone()).await.expect_error(409, "suspended");
    let answer = json!({ "sessionId": "talk", "call": "1.0", "result": "So.", "resume": false });
    assert_eq!(
        client.post("/submit-tool-result", answer).await.expect(202)["resumption"],
        "not_requested"
    );
    let responses = join_all((0..8).map(|_| client.post("/resume", resume.clone()))).await;
    let is_started = |response: &&crate::support::Response| response.status.as_u16() == 202;
    assert_eq!(responses.iter().filter(is_started).count(), 1);
    assert_eq!(responses.iter().filter(|response| response.status.as_u16() == 409).count(), 7);
    assert_eq!(ended(&world, "talk").await["run"]["output"], "I see.");
    assert_eq!(world.model.calls(), 2);
}
