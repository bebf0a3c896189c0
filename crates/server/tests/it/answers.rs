//! `POST /submit-tool-result`.

use futures_util::future::join_all;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::{Value, json};

use crate::support::World;

/// Starts a run that waits for the answer to one call.
async fn waiting(tool: &str, input: Value) -> (World, Value) {
    let replies = [Reply::tool_call(tool, input), Reply::text("Thank you.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client("ann");
    let request = json!({ "sessionId": "bill", "agentType": "clerk", "message": "Go!" });
    client.post("/start", request).await.expect(202);
    let events = client.events("/sse?sessionId=bill").await.rest().await;
    assert_eq!(events.last().unwrap().data, json!({ "status": "paused" }));
    let status = client.get("/status?sessionId=bill").await.expect(200);
    assert_eq!(status["state"], "waiting");
    let pending = status["pendingCalls"][0].clone();
    (world, pending)
}

async fn output(world: &World) -> Value {
    let client = world.client("ann");
    client.events("/sse?sessionId=bill").await.rest().await;
    client.get("/status?sessionId=bill").await.expect(200)["run"]["output"].clone()
}

#[tokio::test]
async fn an_approval_continues_the_session() {
    let (world, pending) = waiting("pay", json!({ "to": "Bob" })).await;
    let client = world.client("ann");
    let answer = json!({
        "sessionId": "bill", "call": pending["reference"], "approved": true,
        "digest": pending["digest"], "requestId": "answer-1",
    });
    let mut forged = answer.clone();
    forged["digest"] = "0".repeat(64).into();
    client.post("/submit-tool-result", forged).await.expect_error(409, "arguments_changed");
    let answered = client.post("/submit-tool-result", answer.clone()).await;
    let body = answered.expect(202);
    assert_eq!((&body["resumption"], &body["call"]), (&json!("started"), &json!("bill#1.0")));
    assert_eq!(answered.header("x-run-id"), body["runId"].as_str());
    assert_eq!(output(&world).await, "Thank you.");
    // The same answer again is fine, and another one is too late.
    client.post("/submit-tool-result", answer.clone()).await.expect(202);
    let mut late = answer;
    late["requestId"] = "answer-2".into();
    client.post("/submit-tool-result", late).await.expect_error(409, "already_answered");
    let log = world.client("eve").get("/sessions/bill/log").await.expect(200);
    assert!(log.to_string().contains(r#""by":"ann""#), "{log}");
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn a_denial_reaches_the_model_with_its_reason() {
    let (world, pending) = waiting("pay", json!({ "to": "Bob" })).await;
    let answer = json!({
        "sessionId": "bill", "call": pending["call"], "approved": false, "reason": "too much",
    });
    world.client("ann").post("/submit-tool-result", answer).await.expect(202);
    assert_eq!(output(&world).await, "Thank you.");
    assert!(format!("{:?}", world.model.seen()[1].messages).contains("too much"));
}

#[tokio::test]
async fn a_client_tool_gets_its_result_even_if_it_is_null() {
    let (world, _) = waiting("ask", json!({ "question": "Why?" })).await;
    let client = world.client("ann");
    let submit = |answer: Value| client.post("/submit-tool-result", answer);
    let wrong = json!({ "sessionId": "bill", "call": "1.0", "approved": true });
    submit(wrong).await.expect_error(400, "answer_wrong_kind");
    submit(json!({ "sessionId": "bill", "call": "7.0", "result": 1 }))
        .await
        .expect_error(404, "call_not_found");
    let answer = json!({ "sessionId": "bill", "call": "1.0", "result": null });
    assert_eq!(submit(answer).await.expect(202)["resumption"], "started");
    assert_eq!(output(&world).await, "Thank you.");
}

#[tokio::test]
async fn an_answer_is_one_of_result_error_and_approved() {
    let (world, _) = waiting("ask", json!({ "question": "Why?" })).await;
    let client = world.client("ann");
    for members in [
        json!({}),
        json!({ "result": 1, "error": "no" }),
        json!({ "result": 1, "approved": true }),
        json!({ "approved": false, "edited": {} }),
        json!({ "result": 1, "reason": "x" }),
        json!({ "result": 1, "requestId": "" }),
    ] {
        let mut answer = json!({ "sessionId": "bill", "call": "1.0" });
        answer.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        assert_eq!(client.post("/submit-tool-result", answer).await.status, 400, "{members}");
    }
}

#[tokio::test]
async fn of_eight_racing_answers_one_is_taken_and_one_run_starts() {
    let (world, pending) = waiting("ask", json!({ "question": "Which?" })).await;
    let client = world.client("ann");
    let answers = (0..8).map(|index| {
        let answer = json!({
            "sessionId": "bill", "call": pending["reference"], "result": index,
        });
        client.post("/submit-tool-result", answer)
    });
    let responses = join_all(answers).await;
    let count = |status: u16| {
        responses.iter().filter(|response| response.status.as_u16() == status).count()
    };
    assert_eq!((count(202), count(409)), (1, 7));
    for response in responses.iter().filter(|response| response.status == 409) {
        response.expect_error(409, "already_answered");
    }
    assert_eq!(output(&world).await, "Thank you.");
    let session = client.get("/sessions/bill").await.expect(200);
    assert_eq!(session["runs"].as_array().unwrap().len(), 2);
    assert_eq!(world.model.calls(), 2);
}
