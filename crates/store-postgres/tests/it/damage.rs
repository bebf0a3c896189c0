//! Damaged rows: the store reports the damage and deletes nothing.

use sqlx::Row as _;

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::store::{AppendOutcome, Page, Position, SessionFilter, StateStore as _};
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_test::within;

use super::support::{Database, add, append, create, id, ids, streams, text};

#[track_caller]
fn assert_names_session(error: &Error) {
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
    assert!(error.context().any(|fact| fact == ("session", "damaged")), "{error}");
}

const LOG: &str = "(SELECT log FROM {s}.sessions WHERE session = 'damaged')";

/// Checks that reading the log reports damage after `sql` was executed, and that other sessions are
/// unaffected.
async fn reading_after(sql: &str) {
    let database = Database::new();
    let store = database.open().await;
    let session = id("damaged");
    let mut position = create(&store, &session).await;
    for name in ["a", "b", "c"] {
        add(&store, &session, &mut position, name).await;
    }
    create(&store, &id("other")).await;
    database.sql(&sql.replace("{log}", LOG)).await;

    let kept = rows(&database).await;
    assert_names_session(&store.read_log(&session, 0, 100).await.unwrap_err());
    assert_eq!(ids(&store, &id("other")).await, ["first"]);
    assert_eq!(rows(&database).await, kept, "something was deleted");
}

async fn rows(database: &Database) -> i64 {
    database.sql("SELECT count(*) FROM {s}.appends").await.first().unwrap().get(0)
}

#[tokio::test]
async fn a_log_with_a_gap_is_corrupt() {
    reading_after("DELETE FROM {s}.appends WHERE id = 'b'").await;
}

#[tokio::test]
async fn a_log_without_its_beginning_is_corrupt() {
    reading_after("DELETE FROM {s}.appends WHERE id = 'first' AND log = {log}").await;
}

#[tokio::test]
async fn a_log_without_its_end_is_corrupt() {
    reading_after("DELETE FROM {s}.appends WHERE id = 'c'").await;
}

#[tokio::test]
async fn a_log_that_is_gone_is_corrupt() {
    reading_after("DELETE FROM {s}.appends WHERE log = {log}").await;
}

#[tokio::test]
async fn a_log_beyond_its_head_is_corrupt() {
    reading_after("UPDATE {s}.sessions SET version = 2 WHERE session = 'damaged'").await;
}

#[tokio::test]
async fn an_append_of_no_events_is_corrupt() {
    reading_after("UPDATE {s}.appends SET count = 0 WHERE id = 'b'").await;
}

#[tokio::test]
async fn a_negative_count_is_corrupt() {
    reading_after("UPDATE {s}.appends SET count = -1 WHERE id = 'b'").await;
}

#[tokio::test]
async fn a_conflict_over_a_log_with_a_gap_is_corrupt() {
    let database = Database::new();
    let store = database.open().await;
    let session = id("damaged");
    let mut position = create(&store, &session).await;
    let stale = position.clone();
    for name in ["a", "b", "c"] {
        add(&store, &session, &mut position, name).await;
    }
    database.sql("DELETE FROM {s}.appends WHERE id = 'a'").await;
    let error = store.append(append(&session, &stale, "late")).await.unwrap_err();
    assert_names_session(&error);
    // An append after a position that the log never had gets `HistoryLost`.
    let lost = Position { version: 2, append: "a".into() };
    let outcome = store.append(append(&session, &lost, "late")).await.unwrap();
    assert_eq!(outcome, AppendOutcome::HistoryLost);
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_corrupt() {
    for sql in [
        "UPDATE {s}.sessions SET status = 'asleep' WHERE session = 'damaged'",
        "UPDATE {s}.sessions SET tags = '[' WHERE session = 'damaged'",
        "UPDATE {s}.sessions SET pending = -1 WHERE session = 'damaged'",
        "UPDATE {s}.sessions SET version = -1 WHERE session = 'damaged'",
    ] {
        let database = Database::new();
        let store = database.open().await;
        create(&store, &id("damaged")).await;
        database.sql(sql).await;
        assert_names_session(&store.head(&id("damaged")).await.unwrap_err());
        let list = store.list(&SessionFilter::default(), &Page::default()).await;
        assert_names_session(&list.unwrap_err());
    }
}

#[tokio::test]
async fn chunks_that_cannot_be_read_end_the_reader() {
    for sql in [r"UPDATE {s}.chunks SET body = '\x5b'", "UPDATE {s}.chunks SET count = 7"] {
        let database = Database::new();
        let store = database.open().await;
        let session = id("damaged");
        streams(&store)
            .append_chunks(batch_id(), &session, None, vec![text(&session, "a")])
            .await
            .unwrap();
        database.sql(sql).await;
        let mut reader = streams(&store).read(&session, 1).await.unwrap();
        assert_names_session(&within(reader.next()).await.unwrap().unwrap_err());
        assert!(within(reader.next()).await.is_none());
    }
}

#[tokio::test]
async fn attempts_that_cannot_be_read_are_corrupt() {
    let database = Database::new();
    let store = database.open().await;
    let session = id("damaged");
    streams(&store)
        .append_chunks(batch_id(), &session, None, vec![text(&session, "a")])
        .await
        .unwrap();
    database.sql("UPDATE {s}.streams SET open = '[[1]]'").await;
    assert_names_session(&streams(&store).info(&session).await.unwrap_err());
    let other = streams(&database.open().await);
    let late = other.append_chunks(batch_id(), &session, None, vec![text(&session, "b")]).await;
    assert_names_session(&late.unwrap_err());
}

#[tokio::test]
async fn tables_that_are_gone_are_corrupt_and_name_the_session() {
    let database = Database::new();
    let store = database.open().await;
    let position = create(&store, &id("damaged")).await;
    database.sql("ALTER TABLE {s}.appends RENAME TO elsewhere").await;
    let late = store.append(append(&id("damaged"), &position, "late")).await;
    assert_names_session(&late.unwrap_err());
}
