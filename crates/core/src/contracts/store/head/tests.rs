//! Tests of the state of a session as one word.

use std::collections::BTreeMap;

use super::{Head, NewSession, SessionStatus, Summary};
use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::store::Position;

fn head(status: SessionStatus, run: Option<&str>, pending: u32, lease: Option<i64>) -> Head {
    let session = SessionId::from("s");
    let (root, tags) = (session.clone(), BTreeMap::new());
    let runtime = "local".into();
    Head {
        session,
        created: NewSession { agent: "a".into(), root, parent: None, tags },
        position: Position { version: 3, append: "x".into() },
        summary: Summary { status, run: run.map(Into::into), runtime, pending, wake_at: None },
        lease_until: lease.map(Timestamp),
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        read_at: Timestamp(10),
    }
}

#[test]
fn a_session_has_one_word_for_its_state() {
    let active = SessionStatus::Active;
    for (head, word) in [
        (head(active, Some("r"), 0, Some(11)), "running"),
        (head(active, Some("r"), 0, Some(10)), "stopped"),
        (head(active, Some("r"), 1, None), "stopped"),
        (head(active, None, 1, None), "waiting"),
        (head(active, None, 0, None), "answered"),
        (head(SessionStatus::Failed, None, 0, None), "failed"),
        (head(SessionStatus::Completed, None, 0, None), "completed"),
    ] {
        assert_eq!(head.state_name(), word);
    }
}
