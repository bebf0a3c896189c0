//! `helix tail`, from another process than the one that runs.

use serde_json::Value;

use crate::support::Place;

fn seqs(chunks: &[Value]) -> Vec<u64> {
    chunks.iter().map(|chunk| chunk["seq"].as_u64().unwrap()).collect()
}

fn text(chunks: &[Value]) -> String {
    let deltas = chunks.iter().filter(|chunk| chunk["type"] == "text_delta");
    deltas.map(|chunk| chunk["delta"].as_str().unwrap()).collect()
}

/// All that the model said, by the log.
fn said(events: &[Value]) -> String {
    let replies = events.iter().filter_map(|event| event["event"].get("model_replied"));
    replies.map(|reply| reply["message"]["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_live_session_is_followed_to_its_end() {
    let place = Place::new();
    let demo = place.start_demo("5", &[]).await;
    let tail = place.helix(&["tail", &demo.session, "--json"]).await;
    let chunks = tail.json_lines();
    assert_eq!(tail.code, 0);
    assert_eq!(seqs(&chunks), (1..=chunks.len() as u64).collect::<Vec<_>>());
    assert_eq!(chunks.last().unwrap()["type"], "run_ended");
    assert_eq!(text(&chunks), said(&place.log(&demo.session).await));
    assert_eq!(demo.end().await.code, 0);
}

#[tokio::test]
async fn an_ended_session_is_replayed() {
    let (place, session) = Place::after_demo().await;
    let tail = place.helix(&["tail", "--last", "--json"]).await;
    let chunks = tail.json_lines();
    assert_eq!(text(&chunks), said(&place.log(&session).await));

    let from = chunks[chunks.len() / 2]["seq"].to_string();
    let rest = place.helix(&["tail", &session, "--from", &from, "--json"]).await.json_lines();
    assert_eq!(rest, chunks[chunks.len() / 2..]);

    let people = place.helix(&["tail", &session]).await;
    for told in ["To compare the moons", "→ rank", "✓ look_up", "Two moons are larger", "completed"]
    {
        assert!(people.stdout.contains(told), "{told} is not in {}", people.stdout);
    }
}

#[tokio::test]
async fn beyond_the_end_there_is_no_chunk_and_it_ends() {
    let (place, session) = Place::after_demo().await;
    let tail = place.helix(&["tail", &session, "--from", "100000", "--json"]).await;
    let kinds: Vec<_> = tail.json_lines().iter().map(|chunk| chunk["type"].clone()).collect();
    assert!(kinds.iter().all(|kind| kind == "stream_resync"), "{kinds:?}");
    assert_eq!(tail.code, 0);
}

#[tokio::test]
async fn a_session_that_changes_its_process_is_followed_on() {
    let place = Place::new();
    let mut demo = place.start_demo("10", &[]).await;
    demo.shows("step 1 is done").await;
    let tail = place.helix(&["tail", &demo.session, "--json"]);
    let tail = tokio::spawn(tail);
    demo.signal(rustix::process::Signal::TERM);
    assert_eq!(demo.child.wait().await.unwrap().code(), Some(4));
    assert_eq!(place.helix(&["resume", &demo.session, "--json"]).await.code, 0);

    let chunks = tail.await.unwrap().json_lines();
    assert_eq!(chunks.last().unwrap()["type"], "run_ended");
    assert!(chunks.iter().any(|chunk| chunk["type"] == "run_resumed"));
}
