//! Damaged files: the store reports the damage and deletes nothing.

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::store::{Page, Position, SessionFilter, StateStore as _};
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{Attempt, Effect};
use helix_agents_test::within;

use futures_util::StreamExt as _;

use super::support::{Folder, add, append, create, id, ids, streams, text};

#[track_caller]
fn assert_names_session(error: &Error) {
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
    assert!(error.context().any(|fact| fact == ("session", "damaged")), "{error}");
}

/// Checks that reading the log reports damage after `sql` changed the file, and that other sessions
/// are unaffected.
async fn reading_after(sql: &str) {
    let folder = Folder::new();
    let store = folder.open().await;
    let session = id("damaged");
    let mut position = create(&store, &session).await;
    for name in ["a", "b", "c"] {
        add(&store, &session, &mut position, name).await;
    }
    create(&store, &id("other")).await;
    folder.sql().execute_batch(sql).unwrap();

    let kept: i64 =
        folder.sql().query_row("SELECT count(*) FROM appends", [], |row| row.get(0)).unwrap();
    assert_names_session(&store.read_log(&session, 0, 100).await.unwrap_err());
    assert_eq!(ids(&store, &id("other")).await, ["first"]);
    let still: i64 =
        folder.sql().query_row("SELECT count(*) FROM appends", [], |row| row.get(0)).unwrap();
    assert_eq!(still, kept, "something was deleted");
}

#[tokio::test]
async fn a_log_with_a_gap_is_corrupt() {
    reading_after("DELETE FROM appends WHERE id = 'b'").await;
}

#[tokio::test]
async fn a_log_without_its_beginning_is_corrupt() {
    reading_after("DELETE FROM appends WHERE id = 'first' AND key >> 32 = 1").await;
}

#[tokio::test]
async fn a_log_without_its_end_is_corrupt() {
    reading_after("DELETE FROM appends WHERE id = 'c'").await;
}

#[tokio::test]
async fn a_log_that_is_gone_is_corrupt() {
    reading_after("DELETE FROM appends WHERE key >> 32 = 1").await;
}

#[tokio::test]
async fn a_log_beyond_its_head_is_corrupt() {
    reading_after("UPDATE sessions SET version = 2 WHERE session = 'damaged'").await;
}

#[tokio::test]
async fn an_append_of_no_events_is_corrupt() {
    reading_after("UPDATE appends SET count = 0 WHERE id = 'b'").await;
}

#[tokio::test]
async fn a_negative_count_is_corrupt() {
    reading_after("UPDATE appends SET count = -1 WHERE id = 'b'").await;
}

#[tokio::test]
async fn a_conflict_over_a_log_with_a_gap_is_corrupt() {
    let folder = Folder::new();
    let store = folder.open().await;
    let session = id("damaged");
    let mut position = create(&store, &session).await;
    let stale = position.clone();
    for name in ["a", "b", "c"] {
        add(&store, &session, &mut position, name).await;
    }
    folder.sql().execute_batch("DELETE FROM appends WHERE id = 'a'").unwrap();
    let error = store.append(append(&session, &stale, "late")).await.unwrap_err();
    assert_names_session(&error);
    // An append after a position that the log never had gets `HistoryLost`.
    let lost = Position { version: 2, append: "a".into() };
    let outcome = store.append(append(&session, &lost, "late")).await.unwrap();
    assert_eq!(outcome, helix_agents_core::store::AppendOutcome::HistoryLost);
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_corrupt() {
    for sql in [
        "UPDATE sessions SET status = 'asleep' WHERE session = 'damaged'",
        "UPDATE sessions SET tags = '[' WHERE session = 'damaged'",
        "UPDATE sessions SET pending = -1 WHERE session = 'damaged'",
    ] {
        let folder = Folder::new();
        let store = folder.open().await;
        create(&store, &id("damaged")).await;
        folder.sql().execute_batch(sql).unwrap();
        assert_names_session(&store.head(&id("damaged")).await.unwrap_err());
        let list = store.list(&SessionFilter::default(), &Page::default()).await;
        assert_names_session(&list.unwrap_err());
    }
}

#[tokio::test]
async fn chunks_that_cannot_be_read_end_the_reader() {
    for sql in ["UPDATE chunks SET body = x'5b'", "UPDATE chunks SET count = 7"] {
        let folder = Folder::new();
        let store = folder.open().await;
        let session = id("damaged");
        streams(&store)
            .append_chunks(batch_id(), &session, None, vec![text(&session, "a")])
            .await
            .unwrap();
        folder.sql().execute_batch(sql).unwrap();
        let mut reader = streams(&store).read(&session, 1).await.unwrap();
        assert_names_session(&within(reader.next()).await.unwrap().unwrap_err());
        assert!(within(reader.next()).await.is_none());
    }
}

#[tokio::test]
async fn attempts_that_cannot_be_read_are_corrupt() {
    let folder = Folder::new();
    let store = folder.open().await;
    let session = id("damaged");
    streams(&store)
        .append_chunks(batch_id(), &session, None, vec![text(&session, "a")])
        .await
        .unwrap();
    folder.sql().execute_batch("UPDATE streams SET open = '[[1]]'").unwrap();
    assert_names_session(&streams(&store).info(&session).await.unwrap_err());
    let late =
        streams(&store).append_chunks(batch_id(), &session, None, vec![text(&session, "b")]).await;
    assert_names_session(&late.unwrap_err());
}

#[tokio::test]
async fn a_damaged_page_is_corrupt() {
    let folder = Folder::new();
    let store = folder.open().await;
    let session = id("s");
    let mut position = create(&store, &session).await;
    for number in 0..300 {
        add(&store, &session, &mut position, &format!("append number {number}")).await;
    }
    let attempt = streams(&store)
        .begin(batch_id(), &session, &Effect::Model { step: 1 }, text(&session, ""))
        .await;
    assert_eq!(attempt.unwrap(), Attempt(1));
    store.close().await;
    let mut bytes = std::fs::read(folder.file()).unwrap();
    // The last pages, which contain appends.
    let last = bytes.len() - 4096 * 3;
    let (_, pages) = bytes.split_at_mut(last);
    pages.iter_mut().for_each(|byte| *byte = !*byte);
    std::fs::write(folder.file(), &bytes).unwrap();

    let store = folder.open().await;
    let error = store.read_log(&session, 0, 1000).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
}
