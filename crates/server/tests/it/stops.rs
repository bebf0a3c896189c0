//! `POST /interrupt` and `POST /abort`.

use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use crate::support::World;

async fn at_gate(replies: impl FnOnce(&Gate) -> Vec<Reply>) -> (World, Gate, String) {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new(replies(&gate))).await;
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    let started = world.client("ann").post("/start", request).await.expect(202);
    gate.reached().await;
    (world, gate, started["runId"].as_str().unwrap().to_owned())
}

async fn last_status(world: &World) -> String {
    let client = world.client("ann");
    client.events("/sse?sessionId=talk").await.rest().await;
    let status = client.get("/status?sessionId=talk").await.expect(200);
    status["run"]["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_interrupted_run_stops_at_the_boundary_and_is_resumed() {
    let replies = |gate: &Gate| vec![Reply::more_text("One.").at_gate(gate), Reply::text("Two.")];
    let (world, gate, run) = at_gate(replies).await;
    let client = world.client("ann");
    let request = json!({ "sessionId": "talk", "runId": run, "reason": "lunch" });
    let stopped = client.post("/interrupt", request.clone()).await.expect(202);
    assert_eq!(stopped, json!({ "sessionId": "talk", "ended": false }));
    gate.open();
    assert_eq!(last_status(&world).await, "interrupted");
    let status = client.get("/status?sessionId=talk").await.expect(200);
    assert_eq!((&status["run"]["reason"], &status["canResume"]), (&json!("lunch"), &json!(true)));
    assert_eq!(client.post("/interrupt", request.clone()).await.expect(200)["ended"], true);
    client.post("/resume", json!({ "sessionId": "talk" })).await.expect(202);
    assert_eq!(last_status(&world).await, "completed");
    // The first run is not the last one any more.
    assert_eq!(client.post("/interrupt", request).await.expect(200)["ended"], true);
}

#[tokio::test]
async fn an_aborted_run_stops_at_once() {
    let (world, _gate, run) = at_gate(|gate| vec![Reply::text("Never.").at_gate(gate)]).await;
    let client = world.client("ann");
    let other = json!({ "sessionId": "talk", "runId": "another" });
    assert_eq!(client.post("/abort", other).await.expect(200)["ended"], true);
    let request = json!({ "sessionId": "talk", "runId": run });
    client.post("/abort", request.clone()).await.expect(202);
    assert_eq!(last_status(&world).await, "aborted");
    assert_eq!(client.post("/abort", request).await.expect(200)["ended"], true);
    let resume = client.post("/resume", json!({ "sessionId": "talk" })).await;
    resume.expect_error(409, "nothing_to_resume");
}

#[tokio::test]
async fn a_suspended_session_is_aborted() {
    let replies = [Reply::tool_call("ask", json!({ "question": "Why?" }))];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    let client = world.client("ann");
    let started = client.post("/start", request).await.expect(202);
    assert_eq!(last_status(&world).await, "suspended_client_tool");
    let request = json!({ "sessionId": "talk", "runId": started["runId"] });
    client.post("/abort", request).await.expect(202);
    assert_eq!(last_status(&world).await, "aborted");
}

#[tokio::test]
async fn a_session_that_does_not_exist_cannot_be_stopped() {
    let world = World::new(ScriptedLlm::new([])).await;
    for path in ["/interrupt", "/abort"] {
        let response = world.client("ann").post(path, json!({ "sessionId": "none" })).await;
        response.expect_error(404, "session_not_found");
    }
}
