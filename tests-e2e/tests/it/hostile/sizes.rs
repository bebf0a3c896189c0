//! Messages and sessions that are unusually large.

use std::sync::Arc;

use helix_agents::RuntimeBuilder as _;
use helix_agents::agent::Agent;
use helix_agents::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents::id::SessionId;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::session::{
    Durability, RunStatus, SessionExport, export_session, import_session, load,
};
use helix_agents::tool::{Tool, ToolError};
use helix_agents_conformance::normalise;
use helix_agents_test::{Reply, ScriptedLlm};
use helix_agents_tests_e2e::stores::Kind;
use helix_agents_tests_e2e::verbs::Worker;
use serde_json::{Value, json};

use super::TestStore;
use crate::support::{Story, stream_of};
use crate::sweep::blocking;

const TEN_MEGABYTES: usize = 10_000_000;

/// A user message and a tool result have this size, and another process reads both.
pub(super) async fn ten_megabytes(kind: &Kind) {
    let test_store = TestStore::of(kind).await;
    let large = |letter: &str| letter.repeat(TEN_MEGABYTES);
    let fetch = Tool::function("fetch", "Fetches a lot.", move |_: Value, _| async move {
        Ok::<_, ToolError>("t".repeat(TEN_MEGABYTES))
    });
    let reader = Agent::builder("reader").system_prompt("You read.").model("scripted");
    let reader = reader.tool(fetch).max_result_bytes(2 * TEN_MEGABYTES).build().unwrap().erased();
    let boot = || {
        let replies = [
            Reply::tool_call("fetch", json!({})),
            Reply::text("That was long."),
            Reply::text("It still is."),
        ];
        let llm = ScriptedLlm::new(replies);
        let runtime = LocalRuntime::builder()
            .state_store(Arc::clone(&test_store.store.state))
            .stream_manager(Arc::clone(&test_store.store.streams))
            .llm(llm.clone())
            .build()
            .unwrap();
        (runtime, llm)
    };
    let session = SessionId::from("large");
    for (turn, text) in [large("u"), "again".to_owned()].into_iter().enumerate() {
        let (runtime, llm) = boot();
        let options = ExecuteOptions::default().session(session.clone());
        let handle = runtime.execute(Arc::clone(&reader), text.into(), options).await.unwrap();
        assert_eq!(handle.result().await.unwrap().status, RunStatus::Completed);
        let seen = llm.seen();
        let seen = normalise::transcript(&seen.last().unwrap().messages);
        let heads: Vec<String> = seen.lines().map(|line| line.chars().take(60).collect()).collect();
        let heard = seen.contains(&large("u")) && seen.contains(&large("t"));
        assert!(heard, "turn {turn}: {heads:?}");
    }
    let stream = normalise::stream(&stream_of(&*test_store.store.streams, &session).await);
    assert!(stream.contains("It still is."), "the stream does not show the end");
}

/// A session of this size is imported, read, resumed and completed.
pub(super) fn fifty_thousand_events(kind: &'static Kind) {
    let (export, transcript) = long_story();
    blocking().block_on(async {
        let test_store = TestStore::of(kind).await;
        import_session(&*test_store.store.state, &export).await.unwrap();
        let root = SessionId::from("story");
        let before = load(&*test_store.store.state, &root).await.unwrap().position().version;
        assert!(before > 50_000);
        let (mode, store) = (Durability::PerEffect, test_store.store.clone());
        let worker =
            Worker::new("local:", "plain", mode, store, &test_store.trace()).await.unwrap();
        let answer = worker.drive("resume", None).await.unwrap().unwrap();
        assert_eq!(answer.get("status").unwrap(), "completed");
        let fold = load(&*test_store.store.state, &root).await.unwrap();
        assert_eq!(normalise::transcript(fold.transcript()), transcript);
        // Only new events are appended, and nothing of the history is written again.
        let log = test_store.store.state.read_log(&root, before, u32::MAX).await.unwrap();
        let bytes: usize = log.iter().map(|append| append.body.len()).sum();
        assert!(bytes < 10_000, "{bytes} bytes for the rest of the story");
    });
}

/// Returns the export of a session that was killed and extended to many events, and the transcript of the completed
/// session.
fn long_story() -> (SessionExport, String) {
    let sqlite = Kind::named("sqlite").unwrap();
    let whole = Story::new(sqlite, "plain", "per_effect");
    let points = whole.run(None).points;
    let append = points.iter().rposition(|name| name == "tool.before").unwrap();
    let killed = Story::new(sqlite, "plain", "per_effect");
    assert!(killed.run(Some(append + 1)).was_killed());
    let root = SessionId::from("story");
    let (export, transcript) = blocking().block_on(async {
        let whole = load(&*whole.stores().await.state, &root).await.unwrap();
        let export = export_session(&*killed.stores().await.state, &root).await.unwrap();
        (export, normalise::transcript(whole.transcript()))
    });
    let mut export = serde_json::to_value(export).unwrap();
    let events = export["sessions"][0]["events"].as_array_mut().unwrap();
    let last = events.last().unwrap().clone();
    for number in 0..50_000 {
        let mut event = last.clone();
        event["seq"] = (events.len() + 1).into();
        event["event"] = json!({ "usage_recorded": {
            "source_type": "thought", "source_name": number.to_string(), "amount": 1.0,
            "success": true,
        } });
        events.push(event);
    }
    (serde_json::from_value(export).unwrap(), transcript)
}
