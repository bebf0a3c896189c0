//! The indexes of list queries that would be slow without one.

use rusqlite::{Connection, params_from_iter};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::store::{SessionFilter, SessionStatus};

use super::super::{head, tags};
use super::Conditions;

fn plan(filter: &SessionFilter) -> String {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("../../migrations/1.sql")).unwrap();
    connection.execute_batch(include_str!("../../migrations/7.sql")).unwrap();
    let leading = tags::rarest(&connection, filter).unwrap();
    let conditions = Conditions::of(filter, leading, Timestamp(0));
    let sql = format!("EXPLAIN QUERY PLAN {}", conditions.query(head::COLUMNS, 10));
    let mut statement = connection.prepare(&sql).unwrap();
    let lines = statement.query_map(params_from_iter(conditions.values), |row| row.get(3));
    lines.unwrap().collect::<rusqlite::Result<Vec<String>>>().unwrap().join("; ")
}

#[test]
fn all_sessions_are_read_in_their_order() {
    let filter = SessionFilter::default();
    assert_eq!(plan(&filter), "SCAN sessions USING INDEX sessions_by_age");
}

#[test]
fn expired_leases_are_searched_among_runs_only() {
    let filter = SessionFilter::new().lease_expired();
    assert_eq!(plan(&filter), "SCAN sessions USING INDEX sessions_running");
}

#[test]
fn pending_calls_are_searched_among_sessions_that_have_some() {
    let filter = SessionFilter::new().pending();
    assert_eq!(plan(&filter), "SCAN sessions USING INDEX sessions_pending");
}

#[test]
fn sessions_of_one_root_are_found_without_reading_others() {
    let filter = SessionFilter::new().root("r");
    assert_eq!(plan(&filter), "SEARCH sessions USING INDEX sessions_by_root (root=?)");
}

#[test]
fn sessions_with_a_tag_are_read_in_their_order() {
    let filter = SessionFilter::new().tag("k", "v");
    let conditions = [
        (filter.clone(), "key=? AND value=?"),
        (filter.clone().agent("a").status(SessionStatus::Failed).pending(), "key=? AND value=?"),
        (filter.clone().created_from(Timestamp(1)), "key=? AND value=? AND created_at>?"),
    ];
    for (filter, searched) in conditions {
        let expected = format!(
            "SEARCH session_tags USING COVERING INDEX session_tags_by_value ({searched}); \
             SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (session=?)"
        );
        assert_eq!(plan(&filter), expected, "{filter:?}");
    }
}

#[test]
fn further_tags_are_looked_up_by_session() {
    let plan = plan(&SessionFilter::new().tag("k", "v").tag("other", "v"));
    assert!(plan.contains("USING PRIMARY KEY (session=? AND key=?)"), "{plan}");
    assert!(!plan.contains("TEMP B-TREE"), "{plan}");
}

#[test]
fn sessions_of_one_root_are_found_without_the_index_of_tags() {
    let plan = plan(&SessionFilter::new().root("r").tag("k", "v"));
    assert!(plan.contains("SEARCH sessions USING INDEX sessions_by_root (root=?)"), "{plan}");
    assert!(plan.contains("USING PRIMARY KEY (session=? AND key=?)"), "{plan}");
}
