//! Tests of `helix resume` after interruptions and signals.

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::TestDir;

#[tokio::test]
async fn a_completed_session_has_nothing_to_resume() {
    let (dir, session) = TestDir::after_demo().await;
    let before = dir.log(&session).await;
    let text = dir.helix(&["resume", "--last"]).await;
    assert_eq!(text.code, 0, "{text:?}");
    assert!(text.stderr.contains("is completed: there is nothing to resume"), "{text:?}");
    assert!(text.stdout.contains("Two moons are larger"), "{text:?}");

    let json = dir.helix(&["resume", &session, "--json"]).await.json();
    assert_eq!((&json["status"], &json["runs"]), (&"completed".into(), &1.into()));
    assert_eq!(dir.log(&session).await, before);
}

#[tokio::test]
async fn ctrl_c_interrupts_at_the_end_of_the_step_and_resume_continues() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("10", &["--trace", "trace.jsonl"]).await;
    demo.shows("→ look_up").await;
    demo.signal(Signal::INT);
    let session = demo.session.clone();
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stderr.contains("interrupting"), "{done:?}");
    assert!(done.stdout.contains(&format!("resume   helix resume {session}")), "{done:?}");

    let resumed = dir.helix(&["resume", &session, "--json"]).await;
    let result = resumed.json();
    assert_eq!((resumed.code, &result["status"]), (0, &"completed".into()));
    assert_eq!((&result["runs"], &result["tool_calls"]), (&2.into(), &7.into()));
    // An interruption repeats no tool call.
    let trace = std::fs::read_to_string(dir.path("trace.jsonl")).unwrap();
    assert_eq!(trace.lines().count(), 7, "{trace}");
}

#[tokio::test]
async fn a_second_ctrl_c_aborts_and_there_is_nothing_to_resume() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("40", &[]).await;
    demo.shows("To compare the moons").await;
    demo.signal(Signal::INT);
    // Two simultaneous signals merge, so the first one has to be handled before.
    let line = BufReader::new(demo.child.stderr.take().unwrap()).lines().next_line().await;
    assert!(line.unwrap().unwrap().contains("interrupting"));
    demo.signal(Signal::INT);
    let session = demo.session.clone();
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");

    let resumed = dir.helix(&["resume", &session, "--json"]).await;
    assert_eq!((resumed.code, &resumed.json()["status"]), (4, &"aborted".into()));
    assert!(done.stdout.contains("aborted in"), "{done:?}");
}

#[tokio::test]
async fn sigterm_stops_the_session_immediately() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("10", &["--trace", "trace.jsonl"]).await;
    demo.shows("→ look_up").await;
    demo.signal(Signal::TERM);
    let session = demo.session.clone();
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stderr.contains(&format!("helix resume {session}")), "{done:?}");
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!(list[0]["status"], "stopped");

    let resumed = dir.helix(&["resume", "--last"]).await;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(!resumed.stderr.contains("may still be running"), "{resumed:?}");
}

#[tokio::test]
async fn a_live_session_is_not_taken_over() {
    let dir = TestDir::new();
    let demo = dir.start_demo("25", &[]).await;
    let resumed = dir.helix(&["resume", &demo.session, "--json"]).await;
    assert_eq!((resumed.code, &resumed.json_error()["code"]), (1, &"already_running".into()));
    let done = demo.end().await;
    assert_eq!(done.code, 0, "{done:?}");
}

#[tokio::test]
async fn an_unknown_session_is_an_error() {
    let (dir, _) = TestDir::after_demo().await;
    let unknown = dir.helix(&["resume", "ses_unknown", "--json"]).await;
    let error = unknown.json_error();
    assert_eq!((unknown.code, &error["code"]), (1, &"session_not_found".into()));
    assert_eq!(error["context"]["session"], "ses_unknown");
}
