//! `GET /sse`.

use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use crate::support::{Client, Event, World, text_of};

const TEXT: &str = "The quick brown fox jumps over the lazy dog.";

async fn start(client: &Client) {
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    client.post("/start", request).await.expect(202);
}

fn ids(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| event.id).collect()
}

#[tokio::test]
async fn a_stream_shows_the_chunks_and_ends_with_the_run() {
    let gate = Gate::new();
    let model = ScriptedLlm::new([Reply::text(TEXT).at_gate(&gate)]).chunk_size(1);
    let world = World::new(model).await;
    let client = world.client("ann");
    start(&client).await;
    let mut events = client.events("/sse?sessionId=talk").await;
    let header = |name| events.headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert!(header("cache-control").starts_with("no-cache"));
    assert_eq!(header("x-accel-buffering"), "no");
    assert_eq!(events.next_block().await.unwrap().unwrap(), ": open\n\n");
    let first = events.next().await.unwrap().unwrap();
    assert_eq!((first.kind(), first.id, &first.data["seq"]), ("run_started", Some(1), &json!(1)));
    gate.open();
    let rest = events.rest().await;
    assert_eq!(text_of(&rest), TEXT);
    let [.., ended, end] = rest.as_slice() else { panic!("{rest:?}") };
    assert_eq!((ended.kind(), &ended.data["status"]), ("run_ended", &json!("completed")));
    assert_eq!((end.kind(), end.id, &end.data), ("end", None, &json!({ "status": "ended" })));
}

#[tokio::test]
async fn a_stream_continues_at_the_last_event_without_a_gap_or_a_repetition() {
    let gate = Gate::new();
    let replies = [Reply::more_text(TEXT), Reply::text(TEXT).at_gate(&gate)];
    let world = World::new(ScriptedLlm::new(replies).chunk_size(1)).await;
    let client = world.client("ann");
    start(&client).await;
    // The connection breaks at every second event, in the middle of the first reply and of the second.
    let (mut seen, mut last, mut parts) = (Vec::<Event>::new(), None::<u64>, 0);
    loop {
        let mut client = client.clone();
        if let Some(last) = last {
            client = client.header("last-event-id", &last.to_string());
        }
        let mut events = client.events("/sse?sessionId=talk&from=1").await;
        let mut part = Vec::new();
        while part.len() < 2 {
            let event = events.next().await.unwrap().unwrap();
            if event.kind() == "checkpoint" {
                gate.open();
            }
            let is_end = event.kind() == "end";
            part.push(event);
            if is_end {
                break;
            }
        }
        last = part.iter().rev().find_map(|event| event.id).or(last);
        seen.extend(part);
        parts += 1;
        if seen.last().unwrap().kind() == "end" {
            break;
        }
    }
    let whole = client.events("/sse?sessionId=talk").await.rest().await;
    assert!(parts > 3, "{parts}");
    assert_eq!(ids(&seen), ids(&whole));
    assert_eq!(seen, whole);
    assert_eq!(text_of(&seen), format!("{TEXT}{TEXT}"));
}

#[tokio::test]
async fn a_stream_at_rest_ends_at_once() {
    let world = World::new(ScriptedLlm::new([Reply::text("Done.")])).await;
    let client = world.client("ann");
    start(&client).await;
    let whole = client.events("/sse?sessionId=talk").await.rest().await;
    let last = ids(&whole).last().copied().unwrap();
    let rest = client.events(&format!("/sse?sessionId=talk&from={}", last + 1)).await.rest().await;
    assert_eq!(rest.iter().map(Event::kind).collect::<Vec<_>>(), ["end"]);
    let from = client.events(&format!("/sse?sessionId=talk&from={last}")).await.rest().await;
    assert_eq!(from.iter().map(Event::kind).collect::<Vec<_>>(), ["run_ended", "end"]);
}

#[tokio::test]
async fn a_failed_run_ends_its_stream() {
    let failed = Reply::fails(helix_agents_core::error::ErrorCode::ProviderRejected);
    let world = World::new(ScriptedLlm::new([failed])).await;
    let client = world.client("ann");
    start(&client).await;
    let events = client.events("/sse?sessionId=talk").await.rest().await;
    assert_eq!(events.last().unwrap().data, json!({ "status": "failed" }));
}

#[tokio::test]
async fn a_reader_that_leaves_does_not_stop_the_run() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("Done.").at_gate(&gate)])).await;
    let client = world.client("ann");
    start(&client).await;
    let mut events = client.events("/sse?sessionId=talk").await;
    events.until("run_started").await;
    gate.reached().await;
    drop(events);
    gate.open();
    client.events("/sse?sessionId=talk").await.rest().await;
    let status = client.get("/status?sessionId=talk").await.expect(200);
    assert_eq!(status["run"]["output"], "Done.");
}

#[tokio::test]
async fn a_stream_that_cannot_be_opened_says_why() {
    let world = World::new(ScriptedLlm::new([Reply::text("Done.")])).await;
    let client = world.client("ann");
    start(&client).await;
    client.get("/sse?sessionId=none").await.expect_error(404, "session_not_found");
    client.get("/sse").await.expect_error(400, "input_invalid");
    client.get("/sse?sessionId=talk&from=x").await.expect_error(400, "input_invalid");
    let odd = client.clone().header("last-event-id", "x");
    odd.get("/sse?sessionId=talk").await.expect_error(400, "input_invalid");
}
