//! The routes for `useChat`.

use helix_agents_test::{Gate, Part, Reply, ScriptedLlm};
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Client, Event, World};

/// Returns the body with which a page posts a message of the user.
fn said(id: &str, text: &str) -> Value {
    json!({
        "id": "talk", "trigger": "submit-message",
        "messages": [{ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] }],
    })
}

/// Returns the body with which a page posts the agent's message after it answered calls.
fn answered(message: &Value) -> Value {
    json!({
        "id": "talk", "trigger": "submit-message", "messageId": message["id"],
        "messages": [message],
    })
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::kind).collect()
}

fn text(events: &[Event]) -> String {
    let deltas = events.iter().filter(|event| event.kind() == "text-delta");
    deltas.map(|event| event.data["delta"].as_str().unwrap()).collect()
}

async fn chat(client: &Client, body: Value) -> Vec<Event> {
    client.posted_events("/chat", body).await.rest().await
}

/// Returns the messages of the chat as a page that opens it gets them.
async fn messages(client: &Client) -> Vec<Value> {
    let body = client.get("/chat/talk/messages").await.expect(200);
    body["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_message_starts_a_turn_and_streams_it() {
    let world = World::new(ScriptedLlm::new([Reply::text("Hello Ann.")])).await;
    let client = world.client("ann");
    let stream = client.posted_events("/chat", said("m1", "Hello!")).await;
    let header = |name: &str| stream.headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("x-vercel-ai-ui-message-stream"), "v1");
    assert_eq!(header("x-session-id"), "talk");
    assert!(header("x-run-id").starts_with("chat-"));
    let events = stream.rest().await;
    assert_eq!(kinds(&events).first(), Some(&"start"));
    assert_eq!(events[0].data["messageId"], "talk-turn-1");
    assert_eq!(text(&events), "Hello Ann.");
    assert!(kinds(&events).ends_with(&["finish-step", "finish", "done"]), "{events:?}");
    let shown = messages(&client).await;
    let shown: Vec<_> = shown.iter().map(|message| (&message["id"], &message["role"])).collect();
    assert_eq!(
        shown,
        [(&json!("m1"), &json!("user")), (&json!("talk-turn-1"), &json!("assistant"))]
    );
}

#[tokio::test]
async fn a_repeated_message_attaches_to_its_run() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("Once.").at_gate(&gate)])).await;
    let client = world.client("ann");
    let first = client.posted_events("/chat", said("m1", "Hello!")).await;
    gate.reached().await;
    let second = client.posted_events("/chat", said("m1", "Hello!")).await;
    // Another message has to wait for the turn.
    let other = client.post("/chat", said("m2", "Wait!")).await;
    other.expect_error(409, "already_running");
    gate.open();
    assert_eq!(
        (text(&first.rest().await), text(&second.rest().await)),
        ("Once.".into(), "Once.".into())
    );
    assert_eq!(text(&chat(&client, said("m1", "Hello!")).await), "Once.");
    assert_eq!(world.model.calls(), 1);
    assert_eq!(messages(&client).await.len(), 2);
}

#[tokio::test]
async fn a_page_resumes_the_turn_in_progress_from_its_start() {
    let gate = Gate::new();
    let replies = [Reply::more_text("One. "), Reply::text("Two.").at_gate(&gate)];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client("ann");
    assert_eq!(client.get("/chat/talk/stream").await.status, StatusCode::NO_CONTENT);
    let posted = client.posted_events("/chat", said("m1", "Count!")).await;
    gate.reached().await;
    // The page closes the connection, which stops nothing.
    drop(posted);
    let resumed = client.events("/chat/talk/stream").await;
    // For anyone else there is no such chat.
    let foreign = world.client("bob").get("/chat/talk/stream").await;
    assert_eq!(foreign.status, StatusCode::NO_CONTENT);
    world.client("bob").get("/chat/talk/messages").await.expect_error(404, "session_not_found");
    gate.open();
    let events = resumed.rest().await;
    assert_eq!((events[0].kind(), text(&events)), ("start", "One. Two.".to_owned()));
    assert_eq!(client.get("/chat/talk/stream").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_client_tool_is_answered_by_the_page() {
    let ask = Part::call("ask", json!({ "question": "Which?" }));
    let ask = Reply::of_parts([Part::text("I have to ask."), ask]);
    let world = World::new(ScriptedLlm::new([ask, Reply::text("Blue then.")])).await;
    let client = world.client("ann");
    let events = chat(&client, said("m1", "Paint!")).await;
    let call = events.iter().find(|event| event.kind() == "tool-input-available").unwrap();
    assert_eq!(call.data["providerExecuted"], Value::Null, "the page executes it");
    assert_eq!(events[events.len() - 2].data["finishReason"], "tool-calls");
    let mut message = messages(&client).await[1].clone();
    let part =
        message["parts"].as_array_mut().unwrap().iter_mut().find(|part| part["type"] == "tool-ask");
    let part = part.unwrap();
    assert_eq!(part["state"], "input-available");
    part["state"] = "output-available".into();
    part["output"] = json!({ "colour": "blue" });
    let events = chat(&client, answered(&message)).await;
    // The page keeps what it has.
    assert_eq!(
        (events[0].data["messageId"].clone(), text(&events)),
        (message["id"].clone(), "Blue then.".into())
    );
    assert!(kinds(&events).contains(&"start-step"));
    // The same answer again shows the end and starts nothing.
    chat(&client, answered(&message)).await;
    assert_eq!(world.model.calls(), 2);
    let seen = format!("{:?}", world.model.seen().last().unwrap());
    assert!(seen.contains("blue"), "{seen}");
}

/// Posts the answer to the approval of a payment.
async fn decide(world: &World, approved: bool, forged: bool) -> Result<Vec<Event>, (u16, String)> {
    let client = world.client("ann");
    chat(&client, said("m1", "Pay Bob!")).await;
    let mut message = messages(&client).await[1].clone();
    let parts = message["parts"].as_array_mut().unwrap();
    let part = parts.iter_mut().find(|part| part["type"] == "tool-pay").unwrap();
    assert_eq!(part["state"], "approval-requested");
    part["state"] = "approval-responded".into();
    part["approval"]["approved"] = approved.into();
    if forged {
        let id = part["approval"]["id"].as_str().unwrap();
        let call = id.split_once('~').unwrap().0;
        part["approval"]["id"] = format!("{call}~{}", "0".repeat(64)).into();
    }
    let posted = client.post("/chat", answered(&message)).await;
    if posted.status != StatusCode::OK {
        let code = posted.json()["error"]["code"].as_str().unwrap().to_owned();
        return Err((posted.status.as_u16(), code));
    }
    let body = String::from_utf8(posted.body.to_vec()).unwrap();
    let blocks = body.split("\n\n").filter(|block| block.contains("data: {"));
    Ok(blocks.map(Event::parse).collect())
}

fn paying() -> ScriptedLlm {
    ScriptedLlm::new([Reply::tool_call("pay", json!({ "to": "Bob" })), Reply::text("Settled.")])
}

#[tokio::test]
async fn an_approved_call_runs() {
    let world = World::new(paying()).await;
    let events = decide(&world, true, false).await.unwrap();
    let output = events.iter().find(|event| event.kind() == "tool-output-available").unwrap();
    assert_eq!(output.data["output"], "paid Bob");
    assert_eq!(text(&events), "Settled.");
}

#[tokio::test]
async fn a_denied_call_does_not_run() {
    let world = World::new(paying()).await;
    let events = decide(&world, false, false).await.unwrap();
    assert!(kinds(&events).contains(&"tool-output-denied"), "{events:?}");
    assert_eq!(text(&events), "Settled.");
    let seen = format!("{:?}", world.model.seen().last().unwrap());
    assert!(!seen.contains("paid Bob"), "{seen}");
}

#[tokio::test]
async fn a_forged_approval_is_refused() {
    let world = World::new(paying()).await;
    let refused = decide(&world, true, true).await.unwrap_err();
    assert_eq!(refused, (409, "arguments_changed".to_owned()));
    assert_eq!(world.model.calls(), 1);
    // The page learns the state from the log.
    let message = messages(&world.client("ann")).await[1].clone();
    assert!(message.to_string().contains("approval-requested"), "{message}");
    let busy = world.client("ann").post("/chat", said("m2", "And?")).await;
    busy.expect_error(409, "suspended");
}

#[tokio::test]
async fn a_reply_is_generated_again() {
    let replies = ["One.", "Two."].map(Reply::text);
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client("ann");
    chat(&client, said("m1", "First")).await;
    chat(&client, said("m2", "Second")).await;
    let again = |message: Option<&str>| {
        let mut body = said("m2", "Second");
        body["trigger"] = "regenerate-message".into();
        if let Some(message) = message {
            body["messageId"] = message.into();
        }
        body
    };
    let events = chat(&client, again(None)).await;
    assert_eq!(
        (events[0].data["messageId"].as_str(), text(&events)),
        (Some("talk-turn-2"), "Two.".into())
    );
    assert_eq!(world.model.calls(), 3);
    // The first turn has no checkpoint before it.
    let events = chat(&client, again(Some("talk-turn-1"))).await;
    assert_eq!(
        (events[0].data["messageId"].as_str(), text(&events)),
        (Some("talk-turn-1"), "One.".into())
    );
    assert_eq!(world.model.calls(), 4);
    let seen = format!("{:?}", world.model.seen().last().unwrap());
    assert!(seen.contains("First") && !seen.contains("Second"), "{seen}");
    assert_eq!(messages(&client).await.len(), 2);
    client.post("/chat", again(Some("talk-turn-9"))).await.expect_error(400, "input_invalid");
}

#[tokio::test]
async fn an_edited_message_replaces_what_follows() {
    let replies = ["One.", "Two."].map(Reply::text);
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client("ann");
    chat(&client, said("m1", "First")).await;
    chat(&client, said("m2", "Second")).await;
    let mut edited = said("m1", "First, in Spanish");
    edited["messageId"] = "m1".into();
    assert_eq!(text(&chat(&client, edited.clone()).await), "One.");
    let seen = format!("{:?}", world.model.seen().last().unwrap());
    assert!(seen.contains("in Spanish") && !seen.contains("Second"), "{seen}");
    // The same request again shows the turn.
    assert_eq!(text(&chat(&client, edited).await), "One.");
    assert_eq!(world.model.calls(), 3);
    let shown = messages(&client).await;
    assert_eq!((shown.len(), &shown[0]["parts"][0]["text"]), (2, &json!("First, in Spanish")));
}

#[tokio::test]
async fn a_chat_belongs_to_one_agent_and_one_owner() {
    let world = World::new(ScriptedLlm::new([Reply::text("Hello.")])).await;
    let client = world.client("ann");
    let of_agent = |agent: &str| format!("/agents/{agent}/chat");
    client
        .post(&of_agent("no-such-agent"), said("m1", "Hi"))
        .await
        .expect_error(404, "agent_not_found");
    client.posted_events(&of_agent("clerk"), said("m1", "Hi")).await.rest().await;
    client.post(&of_agent("poet"), said("m2", "Hi")).await.expect_error(409, "agent_mismatch");
    let foreign = world.client("bob").post("/chat", said("m2", "Hi")).await;
    foreign.expect_error(404, "session_not_found");
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn the_routes_of_a_chat_take_the_session_of_the_path() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("Never.").at_gate(&gate)])).await;
    let client = world.client("ann");
    let stream = client.posted_events("/chat", said("m1", "Hello!")).await;
    gate.reached().await;
    let stopped = client.post("/chat/talk/abort", json!({ "reason": "enough" })).await.expect(202);
    assert_eq!(stopped, json!({ "sessionId": "talk", "ended": false }));
    let events = stream.rest().await;
    assert!(kinds(&events).contains(&"abort"), "{events:?}");
    let ended = client.post("/chat/talk/interrupt", json!({})).await.expect(200);
    assert_eq!(ended["ended"], true);
    let answer = json!({ "call": "1.0", "result": 1 });
    let late = client.post("/chat/talk/submit-tool-result", answer).await;
    late.expect_error(404, "call_not_found");
}
