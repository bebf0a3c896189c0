//! Tests of `helix tail` from another process.

use serde_json::Value;

use crate::support::TestDir;

fn seqs(chunks: &[Value]) -> Vec<u64> {
    chunks.iter().map(|chunk| chunk["seq"].as_u64().unwrap()).collect()
}

fn text(chunks: &[Value]) -> String {
    let deltas = chunks.iter().filter(|chunk| chunk["type"] == "text_delta");
    deltas.map(|chunk| chunk["delta"].as_str().unwrap()).collect()
}

/// All text of the model in the log.
fn model_text(events: &[Value]) -> String {
    let replies = events.iter().filter_map(|event| event["event"].get("model_replied"));
    replies.map(|reply| reply["message"]["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_live_session_is_followed_to_its_end() {
    let dir = TestDir::new();
    let demo = dir.start_demo("5", &[]).await;
    let tail = dir.helix(&["tail", &demo.session, "--json"]).await;
    let chunks = tail.json_lines();
    assert_eq!(tail.code, 0);
    assert_eq!(seqs(&chunks), (1..=chunks.len() as u64).collect::<Vec<_>>());
    assert_eq!(chunks.last().unwrap()["type"], "run_ended");
    assert_eq!(text(&chunks), model_text(&dir.log(&demo.session).await));
    assert_eq!(demo.end().await.code, 0);
}

#[tokio::test]
async fn an_ended_session_is_replayed() {
    let (dir, session) = TestDir::after_demo().await;
    let tail = dir.helix(&["tail", "--last", "--json"]).await;
    let chunks = tail.json_lines();
    assert_eq!(text(&chunks), model_text(&dir.log(&session).await));

    let from = chunks[chunks.len() / 2]["seq"].to_string();
    let rest = dir.helix(&["tail", &session, "--from", &from, "--json"]).await.json_lines();
    assert_eq!(rest, chunks[chunks.len() / 2..]);

    let shown = dir.helix(&["tail", &session]).await;
    for expected in
        ["To compare the moons", "→ rank", "✓ look_up", "Two moons are larger", "completed"]
    {
        assert!(shown.stdout.contains(expected), "{expected} is not in {}", shown.stdout);
    }
}

#[tokio::test]
async fn a_tail_beyond_the_end_exits_without_chunks() {
    let (dir, session) = TestDir::after_demo().await;
    let tail = dir.helix(&["tail", &session, "--from", "100000", "--json"]).await;
    let kinds: Vec<_> = tail.json_lines().iter().map(|chunk| chunk["type"].clone()).collect();
    assert!(kinds.iter().all(|kind| kind == "stream_resync"), "{kinds:?}");
    assert_eq!(tail.code, 0);
}

#[tokio::test]
async fn a_tail_continues_when_another_process_resumes_the_session() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("10", &[]).await;
    demo.shows("step 1 completed").await;
    let tail = dir.helix(&["tail", &demo.session, "--json"]);
    let tail = tokio::spawn(tail);
    demo.signal(rustix::process::Signal::TERM);
    assert_eq!(demo.child.wait().await.unwrap().code(), Some(4));
    assert_eq!(dir.helix(&["resume", &demo.session, "--json"]).await.code, 0);

    let chunks = tail.await.unwrap().json_lines();
    assert_eq!(chunks.last().unwrap()["type"], "run_ended");
    assert!(chunks.iter().any(|chunk| chunk["type"] == "run_resumed"));
}
