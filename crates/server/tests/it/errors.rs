//! The errors of runs and tools that responses contain.

use helix_agents_core::error::ErrorCode;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::{Value, json};

use crate::support::{Event, World, WorldBuilder};

/// Runs a turn in which a tool fails, and one in which the model fails. Returns the stream's events.
async fn failed(shows_internal_errors: bool) -> (World, Vec<Event>) {
    let replies = [
        Reply::tool_call("print", json!({ "question": "x" })),
        Reply::fails(ErrorCode::ProviderRejected),
    ];
    let builder = WorldBuilder { shows_internal_errors, ..WorldBuilder::new() };
    let world = builder.serve(MemoryStore::new(), ScriptedLlm::new(replies)).await;
    let client = world.client("ann");
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    client.post("/start", request).await.expect(202);
    let events = client.events("/sse?sessionId=talk").await.rest().await;
    (world, events)
}

fn error_of<'a>(events: &'a [Event], kind: &str) -> &'a Value {
    &events.iter().find(|event| event.kind() == kind).unwrap().data["error"]
}

#[tokio::test]
async fn the_message_of_a_providers_or_a_tools_error_is_only_in_the_log() {
    let (world, events) = failed(false).await;
    let (ann, eve) = (world.client("ann"), world.client("eve"));
    let run = events[0].data["run"].as_str().unwrap();
    let of_run = error_of(&events, "error");
    assert_eq!(of_run["code"], "provider_rejected");
    assert!(of_run["message"].as_str().unwrap().contains(run), "{of_run}");
    let of_tool = error_of(&events, "tool_error");
    assert_eq!(of_tool["code"], "tool_failed");
    assert!(of_tool["message"].as_str().unwrap().contains("`1.0`"), "{of_tool}");

    let log = eve.get("/sessions/talk/log").await.expect(200);
    let cause = |text: &str| {
        ["10.0.0.7", "as scripted"].into_iter().filter(|cause| text.contains(cause)).count()
    };
    assert_eq!(cause(&log.to_string()), 2, "the test looks for the right texts");
    let shown = ann.get("/sessions/talk").await.expect(200);
    assert_eq!(shown["runs"][0]["error"]["message"], of_run["message"]);
    assert!(shown["messages"][2]["content"].as_str().unwrap().contains("`1.0`"), "{shown}");
    let status = ann.get("/status?sessionId=talk").await.expect(200);
    assert_eq!(status["run"]["error"]["code"], "provider_rejected");
    for text in [shown.to_string(), status.to_string(), format!("{events:?}")] {
        assert_eq!(cause(&text), 0, "{text}");
    }
}

#[tokio::test]
async fn a_server_for_development_shows_the_messages() {
    let (world, events) = failed(true).await;
    assert!(error_of(&events, "tool_error").to_string().contains("10.0.0.7"));
    assert!(error_of(&events, "error").to_string().contains("as scripted"));
    let shown = world.client("ann").get("/sessions/talk").await.expect(200).to_string();
    assert!(shown.contains("10.0.0.7") && shown.contains("as scripted"), "{shown}");
}
