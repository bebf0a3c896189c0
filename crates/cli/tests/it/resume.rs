//! `helix resume`, and what makes it necessary.

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::Place;

#[tokio::test]
async fn a_completed_session_has_nothing_to_resume() {
    let (place, session) = Place::after_demo().await;
    let before = place.log(&session).await;
    let people = place.helix(&["resume", "--last"]).await;
    assert_eq!(people.code, 0, "{people:?}");
    assert!(people.stderr.contains("is completed: there is nothing to resume"), "{people:?}");
    assert!(people.stdout.contains("Two moons are larger"), "{people:?}");

    let json = place.helix(&["resume", &session, "--json"]).await.json();
    assert_eq!((&json["status"], &json["runs"]), (&"completed".into(), &1.into()));
    assert_eq!(place.log(&session).await, before);
}

#[tokio::test]
async fn ctrl_c_interrupts_at_the_end_of_the_step_and_resume_goes_on() {
    let place = Place::new();
    let mut demo = place.start_demo("10", &["--trace", "trace.jsonl"]).await;
    demo.shows("→ look_up").await;
    demo.signal(Signal::INT);
    let session = demo.session.clone();
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stderr.contains("interrupting"), "{done:?}");
    assert!(done.stdout.contains(&format!("go on    helix resume {session}")), "{done:?}");

    let resumed = place.helix(&["resume", &session, "--json"]).await;
    let result = resumed.json();
    assert_eq!((resumed.code, &result["status"]), (0, &"completed".into()));
    assert_eq!((&result["runs"], &result["tool_calls"]), (&2.into(), &7.into()));
    // An interruption leaves nothing in doubt.
    let trace = std::fs::read_to_string(place.path("trace.jsonl")).unwrap();
    assert_eq!(trace.lines().count(), 7, "{trace}");
}

#[tokio::test]
async fn a_second_ctrl_c_aborts_and_there_is_nothing_to_resume() {
    let place = Place::new();
    let mut demo = place.start_demo("40", &[]).await;
    demo.shows("To compare the moons").await;
    demo.signal(Signal::INT);
    // Two signals at once are one, so it has to have heard of the first.
    let heard = BufReader::new(demo.child.stderr.take().unwrap()).lines().next_line().await;
    assert!(heard.unwrap().unwrap().contains("interrupting"));
    demo.signal(Signal::INT);
    let session = demo.session.clone();
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");

    let resumed = place.helix(&["resume", &session, "--json"]).await;
    assert_eq!((resumed.code, &resumed.json()["status"]), (4, &"aborted".into()));
    assert!(done.stdout.contains("aborted in"), "{done:?}");
}

#[tokio::test]
async fn a_request_to_terminate_gives_the_session_up_at_once() {
    let place = Place::new();
    let mut demo = place.start_demo("10", &["--trace", "trace.jsonl"]).await;
    demo.shows("→ look_up").await;
    demo.signal(Signal::TERM);
    let session = demo.session.clone();
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stderr.contains(&format!("helix resume {session}")), "{done:?}");
    let list = place.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!(list[0]["standing"], "stopped");

    let resumed = place.helix(&["resume", "--last"]).await;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(!resumed.stderr.contains("may still live"), "{resumed:?}");
}

#[tokio::test]
async fn a_live_session_is_not_taken_over() {
    let place = Place::new();
    let demo = place.start_demo("25", &[]).await;
    let resumed = place.helix(&["resume", &demo.session, "--json"]).await;
    assert_eq!((resumed.code, &resumed.json_error()["code"]), (1, &"already_running".into()));
    let done = demo.end().await;
    assert_eq!(done.code, 0, "{done:?}");
}

#[tokio::test]
async fn an_unknown_session_is_an_error() {
    let (place, _) = Place::after_demo().await;
    let unknown = place.helix(&["resume", "ses_unknown", "--json"]).await;
    let error = unknown.json_error();
    assert_eq!((unknown.code, &error["code"]), (1, &"session_not_found".into()));
    assert_eq!(error["context"]["session"], "ses_unknown");
}
