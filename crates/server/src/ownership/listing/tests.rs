//! Positions of lists.

use std::collections::BTreeMap;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, SessionId};
use helix_agents_core::store::{Head, NewSession, Position, SessionStatus, Summary};

use super::Cursor;

fn head(session: &str, created_at: i64) -> Head {
    let session = SessionId::from(session);
    let created = NewSession {
        agent: "clerk".into(),
        root: session.clone(),
        parent: None,
        tags: BTreeMap::new(),
    };
    Head {
        session,
        created,
        position: Position { version: 1, append: AppendId::from("a") },
        summary: Summary {
            status: SessionStatus::Completed,
            run: None,
            runtime: "local".into(),
            pending: 0,
            wake_at: None,
        },
        lease_until: None,
        created_at: Timestamp(created_at),
        updated_at: Timestamp(created_at),
        read_at: Timestamp(created_at),
    }
}

#[test]
fn a_cursor_has_a_text_for_every_id() {
    for id in ["talk", "~7", "a.b&c=d#e", "Zürich", "-1.5"] {
        let cursor = Cursor::behind(&head(id, 1_700_000_000_000));
        let text = cursor.to_string();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'), "{text}");
        assert_eq!(Cursor::parse(&text), Some(cursor));
    }
    let in_time = Cursor { created_at: Timestamp(-5), after: None };
    assert_eq!(Cursor::parse(&in_time.to_string()), Some(in_time));
    for wrong in ["", "talk", "~7", "7.", "7.6", "7.zz", "7.ff", "7.+1", "1e3", "7.61é"] {
        assert_eq!(Cursor::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_cursor_is_a_position_in_descending_order_of_time_and_id() {
    let cursor = Cursor::behind(&head("m", 7));
    for (head, is_behind) in [
        (head("m", 7), false),
        (head("z", 7), false),
        (head("a", 7), true),
        (head("z", 6), true),
        (head("a", 8), false),
    ] {
        assert_eq!(cursor.precedes(&head), is_behind, "{head:?}");
    }
    let in_time = Cursor { created_at: Timestamp(7), after: None };
    assert!(in_time.precedes(&head("z", 7)) && !in_time.precedes(&head("a", 8)));
}
