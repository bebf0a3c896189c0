//! The routes for clients of AG-UI.

use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::{Value, json};

use crate::support::{Client, Event, World};

const PATH: &str = "/agui/clerk";

fn input(run: &str, messages: &Value) -> Value {
    json!({ "threadId": "talk", "runId": run, "messages": messages })
}

fn said(run: &str, id: &str, text: &str) -> Value {
    input(run, &json!([{ "id": id, "role": "user", "content": text }]))
}

async fn run(client: &Client, body: Value) -> Vec<Event> {
    client.posted_events(PATH, body).await.rest().await
}

fn of_kind<'e>(events: &'e [Event], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event.kind() == kind).map(|event| &event.data).collect()
}

/// Returns `true` if the snapshots, a result or a message contain the text. Which of them does depends on how far the run
/// has come when the client asks.
fn shows(events: &[Event], wanted: &str) -> bool {
    let kinds = ["MESSAGES_SNAPSHOT", "TOOL_CALL_RESULT"];
    let data = events.iter().filter(|event| kinds.contains(&event.kind()));
    data.map(|event| event.data.to_string()).chain([text(events)]).any(|text| text.contains(wanted))
}

fn text(events: &[Event]) -> String {
    let deltas = of_kind(events, "TEXT_MESSAGE_CONTENT").into_iter();
    deltas.map(|event| event["delta"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_message_starts_a_run_and_streams_its_events() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("Hello Ann.").at_gate(&gate)])).await;
    let client = world.client("ann");
    let stream = client.posted_events(PATH, said("r1", "m1", "Hello!")).await;
    gate.reached().await;
    // A known run is joined.
    let joined = client.posted_events(PATH, said("r1", "m1", "Hello!")).await;
    gate.open();
    for events in [stream.rest().await, joined.rest().await] {
        assert_eq!(events[0].data["type"], "RUN_STARTED");
        assert_eq!(
            (&events[0].data["threadId"], &events[0].data["runId"]),
            (&json!("talk"), &json!("r1"))
        );
        let snapshot = of_kind(&events, "MESSAGES_SNAPSHOT")[0];
        assert_eq!(snapshot["messages"][0]["id"], "m1");
        assert_eq!(text(&events), "Hello Ann.");
        assert_eq!(events.last().unwrap().data["type"], "RUN_FINISHED");
    }
    assert_eq!(world.model.calls(), 1);
    // `connect` shows the session at rest.
    let path = format!("{PATH}/connect");
    let shown = client.posted_events(&path, input("r2", &json!([]))).await.rest().await;
    let messages = of_kind(&shown, "MESSAGES_SNAPSHOT")[0];
    assert!(messages.to_string().contains("Hello Ann."), "{messages}");
    assert_eq!(shown.last().unwrap().data["type"], "RUN_FINISHED");
    let foreign = world.client("bob").post(&path, input("r2", &json!([]))).await;
    foreign.expect_error(404, "session_not_found");
}

#[tokio::test]
async fn an_interrupt_is_answered_with_the_next_run() {
    let pay = Reply::tool_call("pay", json!({ "to": "Bob" }));
    let world = World::new(ScriptedLlm::new([pay, Reply::text("Settled.")])).await;
    let client = world.client("ann");
    let events = run(&client, said("r1", "m1", "Pay Bob!")).await;
    let outcome = &events.last().unwrap().data["outcome"];
    assert_eq!(outcome["type"], "interrupt");
    let interrupt = &outcome["interrupts"][0];
    assert_eq!(interrupt["reason"], "tool_call");
    let resume = |approved: bool| {
        let mut body = input("r2", &json!([]));
        body["resume"] = json!([{
            "interruptId": interrupt["id"], "status": "resolved", "payload": { "approved": approved },
        }]);
        body
    };
    let events = run(&client, resume(true)).await;
    assert_eq!(events[0].data["runId"], "r2");
    assert!(shows(&events, "paid Bob") && shows(&events, "Settled."), "{events:?}");
    assert_eq!(world.model.calls(), 2);
    // The same resume again shows the end.
    let events = run(&client, resume(true)).await;
    assert_eq!(events.last().unwrap().data["type"], "RUN_FINISHED");
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn a_client_tool_is_answered_with_a_message() {
    let ask = Reply::tool_call("ask", json!({ "question": "Which?" }));
    let world = World::new(ScriptedLlm::new([ask, Reply::text("Blue then.")])).await;
    let client = world.client("ann");
    let events = run(&client, said("r1", "m1", "Paint!")).await;
    let outcome = &events.last().unwrap().data["outcome"];
    assert_eq!(outcome["type"], "success");
    let call = outcome["pendingToolCallIds"][0].as_str().unwrap();
    let result = json!([{ "id": "t1", "role": "tool", "toolCallId": call, "content": "{\"colour\":\"blue\"}" }]);
    let events = run(&client, input("r2", &result)).await;
    assert!(shows(&events, "Blue then."), "{events:?}");
    let seen = format!("{:?}", world.model.seen().last().unwrap());
    assert!(seen.contains("blue"), "{seen}");
}

/// A client of AG-UI writes results as texts. The schema of the call tells that this one is a number.
#[tokio::test]
async fn the_result_of_a_client_tool_has_the_type_that_the_call_expects() {
    let count = Reply::tool_call("count", json!({ "question": "How many?" }));
    let world = World::new(ScriptedLlm::new([count, Reply::text("So many.")])).await;
    let client = world.client("ann");
    let events = run(&client, said("r1", "m1", "Count!")).await;
    let call = events.last().unwrap().data["outcome"]["pendingToolCallIds"][0].clone();
    let result = json!([{ "id": "t1", "role": "tool", "toolCallId": call, "content": "42" }]);
    let events = run(&client, input("r2", &result)).await;
    assert!(shows(&events, "So many."), "{events:?}");
    let seen = world.model.seen();
    let result = format!("{:?}", seen.last().unwrap().messages.last().unwrap());
    assert!(result.contains("content: \"42\"") && !result.contains("failed: true"), "{result}");
}

/// A client keeps the reasoning of a connection that was cut, although no step with it was recorded.
#[tokio::test]
async fn reasoning_that_only_the_client_has_is_emptied() {
    let world = World::new(ScriptedLlm::new([Reply::text("Hello Ann.")])).await;
    let client = world.client("ann");
    run(&client, said("r1", "m1", "Hello!")).await;
    let cut = json!([{ "id": "r-cut", "role": "reasoning", "content": "Hm" }]);
    let shown = client.posted_events(&format!("{PATH}/connect"), input("r2", &cut)).await;
    let shown = shown.rest().await;
    let messages = &of_kind(&shown, "MESSAGES_SNAPSHOT")[0]["messages"];
    let emptied = json!({ "role": "reasoning", "id": "r-cut", "content": "" });
    assert!(messages.as_array().unwrap().contains(&emptied), "{messages}");
}

#[tokio::test]
async fn a_client_reads_the_capabilities_of_an_agent() {
    let world = World::new(ScriptedLlm::new([])).await;
    let client = world.client("ann");
    let found = client.get("/agui/clerk/capabilities").await.expect(200);
    assert_eq!(
        (&found["identity"]["name"], &found["transport"]["streaming"]),
        (&json!("clerk"), &json!(true))
    );
    client.get("/agui/poet/capabilities").await.expect_error(404, "agent_not_found");
}
