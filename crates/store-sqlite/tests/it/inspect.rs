//! Inspection of files, and the guarantees of the store.

use std::time::Duration;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::store::{Append, LeaseChange, SessionStatus, StateStore as _, Summary};
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_sqlite::{SqliteStore, Synchronous};

use super::support::{Folder, append, create, id, streams, text};

/// Creates a session with this summary and lease.
async fn session(store: &SqliteStore, name: &str, summary: Summary, lease: LeaseChange) {
    let session = id(name);
    let first = create(store, &session).await;
    let next = append(&session, &first, "second");
    let next = Append { summary: Some(summary), lease, ..next };
    store.append(next).await.unwrap();
}

fn summary(status: SessionStatus, run: Option<&str>) -> Summary {
    let run = run.map(Into::into);
    Summary { status, run, runtime: "local".into(), pending: 0, wake_at: None }
}

#[tokio::test]
async fn inspecting_a_missing_file_does_not_create_it() {
    let folder = Folder::new();
    assert_eq!(SqliteStore::builder(folder.file()).inspect().await.unwrap(), None);
    assert!(!folder.file().exists());
}

#[tokio::test]
async fn an_empty_file_stays_empty() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "").unwrap();
    let found = SqliteStore::builder(folder.file()).inspect().await.unwrap().unwrap();
    assert_eq!((found.schema, found.newest_schema, found.bytes), (0, 7, 0));
    assert_eq!(std::fs::read(folder.file()).unwrap(), b"");
}

#[tokio::test]
async fn sessions_are_counted_by_their_state() {
    let folder = Folder::new();
    let store = folder.open().await;
    let long = LeaseChange::Take(Duration::from_secs(60));
    session(&store, "running", summary(SessionStatus::Active, Some("r")), long).await;
    let over = LeaseChange::Take(Duration::ZERO);
    session(&store, "crashed", summary(SessionStatus::Active, Some("r")), over).await;
    session(&store, "interrupted", summary(SessionStatus::Active, Some("r")), LeaseChange::Clear)
        .await;
    for name in ["one", "two"] {
        let done = summary(SessionStatus::Completed, None);
        session(&store, name, done, LeaseChange::Clear).await;
    }
    let failed = Summary { runtime: "temporal".into(), ..summary(SessionStatus::Failed, None) };
    session(&store, "failed", failed, LeaseChange::Clear).await;
    let chunks = vec![text(&id("one"), "a"), text(&id("one"), "b")];
    streams(&store).append_chunks(batch_id(), &id("one"), None, chunks).await.unwrap();

    // Once while the store has the file open, and once after it was closed.
    for _ in 0..2 {
        let found = SqliteStore::builder(folder.file()).inspect().await.unwrap().unwrap();
        assert_eq!((found.sessions.running, found.sessions.stopped), (1, 2));
        let mut ended = found.sessions.without_run;
        ended.sort_by_key(|(status, _)| status.as_str());
        assert_eq!(ended, [(SessionStatus::Completed, 2), (SessionStatus::Failed, 1)]);
        assert_eq!((found.schema, found.chunks, found.writable), (7, 2, true));
        assert_eq!(found.journal_mode, "wal");
        assert_eq!(found.runtimes, ["local", "temporal"]);
        assert!(found.bytes > 0);
        store.close().await;
    }
}

#[tokio::test]
async fn a_file_that_open_would_refuse_is_not_inspected() {
    let folder = Folder::new();
    folder.sql().execute_batch("CREATE TABLE notes (text)").unwrap();
    let before = std::fs::read(folder.file()).unwrap();
    let error = SqliteStore::builder(folder.file()).inspect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreForeign);
    assert!(std::fs::read(folder.file()).unwrap() == before, "the file was changed");

    std::fs::write(folder.file(), "dear diary\n".repeat(200)).unwrap();
    let error = SqliteStore::builder(folder.file()).inspect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt);

    for path in [folder.file().parent().unwrap(), ":memory:".as_ref(), "".as_ref()] {
        let error = SqliteStore::builder(path).inspect().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    }
}

#[tokio::test]
async fn a_power_loss_is_survived_only_with_synchronous_full() {
    let power = |guarantees: Vec<Guarantee>| {
        let of_power = guarantees
            .into_iter()
            .find(|guarantee| guarantee.promise == GuaranteeKind::SurvivesPowerLoss);
        of_power.unwrap().holds
    };
    for (synchronous, holds) in [(Synchronous::Full, true), (Synchronous::Normal, false)] {
        let folder = Folder::new();
        let builder = SqliteStore::builder(folder.file()).synchronous(synchronous);
        assert_eq!(power(builder.guarantees()), holds);
        let store = builder.open().await.unwrap();
        assert_eq!(power(store.guarantees()), holds);
    }
}

#[tokio::test]
async fn a_diagnosis_contains_the_error_of_a_file_that_open_would_refuse() {
    let folder = Folder::new();
    let missing = SqliteStore::builder(folder.file()).diagnose().await.unwrap();
    assert_eq!((missing.exists, missing.file.clone(), missing.findings()), (false, None, vec![]));
    assert!(!folder.file().exists() && missing.folder.writable);

    std::fs::write(folder.file(), "dear diary\n".repeat(200)).unwrap();
    let damaged = SqliteStore::builder(folder.file()).diagnose().await.unwrap();
    assert!(damaged.exists && damaged.error.is_some());
    let [finding] = &damaged.findings()[..] else { panic!("{damaged:?}") };
    assert_eq!(finding.code, ErrorCode::StoreCorrupt.as_str());
    assert!(finding.is_problem() && finding.message.contains("%41"), "{finding:?}");
}
