//! Tests of the stream status.

use std::collections::BTreeMap;

use super::StreamStatus;
use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::store::{Head, NewSession, Position, SessionStatus, Summary};
use crate::stream::{SessionWatermark, StreamInfo};

fn head(status: SessionStatus, run: Option<&str>) -> Head {
    let session = SessionId::from("s");
    let (root, tags) = (session.clone(), BTreeMap::new());
    Head {
        session,
        created: NewSession { agent: "a".into(), root, parent: None, tags },
        position: Position { version: 3, append: "x".into() },
        summary: Summary {
            status,
            run: run.map(Into::into),
            runtime: "local".into(),
            pending: 0,
            wake_at: None,
        },
        lease_until: None,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        read_at: Timestamp(0),
    }
}

fn marked(version: u64) -> StreamInfo {
    let mut info = StreamInfo::default();
    info.marked.insert("s".into(), SessionWatermark { version, seq: 1, fencing_token: 0 });
    info
}

#[test]
fn a_stream_in_line_with_the_log_has_the_status_of_its_session() {
    for (status, expected) in [
        (SessionStatus::Active, StreamStatus::Paused),
        (SessionStatus::Interrupted, StreamStatus::Paused),
        (SessionStatus::Completed, StreamStatus::Ended),
        (SessionStatus::Aborted, StreamStatus::Ended),
        (SessionStatus::Failed, StreamStatus::Failed),
    ] {
        assert_eq!(StreamStatus::of(&head(status, None), &marked(3)), expected);
    }
}

#[test]
fn a_stream_is_active_until_it_shows_the_whole_run() {
    let active = [
        (head(SessionStatus::Active, Some("r")), marked(3)),
        (head(SessionStatus::Completed, None), marked(2)),
        (head(SessionStatus::Completed, None), StreamInfo::default()),
    ];
    for (head, info) in active {
        assert_eq!(StreamStatus::of(&head, &info), StreamStatus::Active);
    }
}
