//! Purging of old sessions, and inspection of a database.

use std::time::Duration;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::store::{
    Append, LeaseChange, Page, Purge, SessionFilter, SessionStatus, StateStore as _,
};
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_postgres::PostgresStore;

use super::support::{Database, append, create, create_below, id, streams, summary, text};

/// Creates a session with this status and lease.
async fn session(store: &PostgresStore, name: &str, status: SessionStatus, lease: LeaseChange) {
    let position = create(store, &id(name)).await;
    let run = (status == SessionStatus::Active).then_some("r");
    let second = append(&id(name), &position, "second");
    let second = Append { summary: Some(summary(status, run)), lease, ..second };
    store.append(second).await.unwrap();
}

async fn names(store: &PostgresStore) -> Vec<String> {
    let heads = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    let mut names: Vec<_> = heads.iter().map(|head| head.session.to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn old_completed_sessions_are_purged_with_their_trees() {
    let database = Database::new();
    let store = database.open().await;
    for name in ["old", "young", "old with young child", "old with children"] {
        session(&store, name, SessionStatus::Completed, LeaseChange::Clear).await;
    }
    session(&store, "failed", SessionStatus::Failed, LeaseChange::Clear).await;
    let long = LeaseChange::Take(Duration::from_secs(600));
    session(&store, "runs", SessionStatus::Active, long).await;
    create_below(&store, &id("young child"), Some("old with young child")).await;
    create_below(&store, &id("old child"), Some("old with children")).await;
    for name in ["old", "young"] {
        streams(&store)
            .append_chunks(batch_id(), &id(name), None, vec![text(&id(name), "x")])
            .await
            .unwrap();
    }
    database
        .sql("UPDATE {s}.sessions SET updated_at = updated_at - 7200000 WHERE session NOT LIKE 'young%'")
        .await;

    let hour = Duration::from_secs(3600);
    let purge = Purge { older_than: hour, statuses: vec![SessionStatus::Completed] };
    assert_eq!(store.purge(&purge).await.unwrap(), 3);
    let left = ["failed", "old with young child", "runs", "young", "young child"];
    assert_eq!(names(&store).await, left);
    assert_eq!(store.purge(&purge).await.unwrap(), 0);
    assert_eq!(streams(&store).info(&id("old")).await.unwrap().last_seq, 0);
    assert_eq!(streams(&store).info(&id("young")).await.unwrap().last_seq, 1);
    let chunks = database.sql("SELECT 1 FROM {s}.chunks").await.len();
    assert_eq!(chunks, 1, "chunks of a deleted stream remained");
    let statuses = SessionStatus::ALL.to_vec();
    // A session with a live run is never purged.
    store.purge(&Purge { older_than: Duration::ZERO, statuses }).await.unwrap();
    assert_eq!(names(&store).await, ["runs"]);
}

#[tokio::test]
async fn a_database_can_be_inspected_without_being_changed() {
    let database = Database::new();
    assert_eq!(database.builder().inspect().await.unwrap(), None);
    let store = database.open().await;
    let long = LeaseChange::Take(Duration::from_secs(600));
    session(&store, "lives", SessionStatus::Active, long).await;
    session(&store, "left", SessionStatus::Active, LeaseChange::Clear).await;
    session(&store, "done", SessionStatus::Completed, LeaseChange::Clear).await;
    streams(&store)
        .append_chunks(batch_id(), &id("done"), None, vec![text(&id("done"), "x"); 3])
        .await
        .unwrap();
    let found = database.builder().inspect().await.unwrap().unwrap();
    let sessions = &found.sessions;
    assert_eq!((sessions.running, sessions.stopped, found.chunks), (1, 1, 3));
    assert_eq!(sessions.without_run, [(SessionStatus::Completed, 1)]);
    assert_eq!((found.schema, found.newest_schema), (5, 5));
    assert!(found.fsync && found.bytes > 0 && !found.server.is_empty(), "{found:?}");
    let findings = database.builder().diagnose().await.findings();
    assert!(findings.iter().any(|finding| finding.code == "session_stopped"), "{findings:?}");
}
