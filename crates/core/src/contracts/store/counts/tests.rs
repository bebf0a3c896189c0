//! Tests of the numbers of sessions.

use serde_json::json;

use super::{SessionCounts, SessionStatus};

#[test]
fn only_states_with_sessions_are_named() {
    let none = SessionCounts::default();
    assert_eq!((none.to_string(), none.finding()), ("none".to_owned(), None));
    let ended = vec![(SessionStatus::Completed, 3), (SessionStatus::Failed, 0)];
    let counts = SessionCounts { running: 2, stopped: 0, without_run: ended };
    assert_eq!(counts.to_string(), "3 completed, 2 running");
    assert_eq!(serde_json::to_value(&counts).unwrap(), json!({ "completed": 3, "running": 2 }));
}

#[test]
fn stopped_sessions_are_advice() {
    for (stopped, message) in
        [(1, "1 session stopped without ending"), (2, "2 sessions stopped without ending")]
    {
        let finding = SessionCounts { stopped, ..SessionCounts::default() }.finding().unwrap();
        assert_eq!((&*finding.code, &*finding.message), ("session_stopped", message));
        assert!(!finding.is_problem());
    }
}
