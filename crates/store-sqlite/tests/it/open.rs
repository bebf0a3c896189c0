//! Opening files, including files of other programs.

use std::path::Path;
use std::time::Duration;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::{ErrorCode, ErrorKind};
use helix_agents_core::store::StateStore as _;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{AttemptRef, Batch, Effect, StreamOp, Writer};
use helix_agents_store_sqlite::{SqliteStore, Synchronous};

use super::support::{Folder, add, append, create, id, ids, refused, streams, text};

async fn file_is_refused(folder: &Folder, code: ErrorCode) {
    let before = std::fs::read(folder.file()).unwrap();
    refused(SqliteStore::builder(folder.file()), code).await;
    assert!(std::fs::read(folder.file()).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_new_file_is_made_and_an_old_one_found_again() {
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        let folder = Folder::new();
        for turn in 0..3 {
            let builder = SqliteStore::builder(folder.file()).synchronous(synchronous);
            let store = builder.open().await.unwrap();
            create(&store, &id(&format!("s{turn}"))).await;
            store.close().await;
        }
        let store = folder.open().await;
        assert_eq!(ids(&store, &id("s0")).await, ["first"]);
        assert_eq!(ids(&store, &id("s2")).await, ["first"]);
    }
}

#[tokio::test]
async fn an_empty_file_is_a_new_one() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "").unwrap();
    create(&folder.open().await, &id("s")).await;
}

#[tokio::test]
async fn the_database_of_another_program_is_not_changed() {
    let folder = Folder::new();
    folder
        .sql()
        .execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES ('x')")
        .unwrap();
    file_is_refused(&folder, ErrorCode::StoreForeign).await;
    folder.sql().execute_batch("DROP TABLE notes; PRAGMA application_id = 77").unwrap();
    file_is_refused(&folder, ErrorCode::StoreForeign).await;
}

#[tokio::test]
async fn the_database_of_a_newer_version_is_not_changed() {
    let folder = Folder::new();
    folder.open().await.close().await;
    folder.sql().execute_batch("PRAGMA user_version = 1000").unwrap();
    file_is_refused(&folder, ErrorCode::StoreNewer).await;
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_not_changed() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "these are notes of mine, and no database\n".repeat(200))
        .unwrap();
    file_is_refused(&folder, ErrorCode::StoreCorrupt).await;
}

#[tokio::test]
async fn an_impossible_path_is_a_configuration_error() {
    let folder = Folder::new();
    let file = folder.file();
    let folder_itself = file.parent().unwrap();
    let paths = [
        folder_itself,
        &folder_itself.join("missing/store.db"),
        Path::new(":memory:"),
        Path::new(""),
    ];
    for path in paths {
        refused(SqliteStore::builder(path), ErrorCode::ConfigInvalid).await;
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_folder_that_cannot_be_written_is_read_only() {
    // A folder in which not even root can create a file.
    let path = Path::new("/proc/helix-agents.db");
    refused(SqliteStore::builder(path), ErrorCode::StoreReadOnly).await;
}

#[tokio::test]
async fn a_full_disk_refuses_appends_and_keeps_existing_ones() {
    let folder = Folder::new();
    let store = SqliteStore::builder(folder.file()).max_pages(64).open().await.unwrap();
    let session = id("s");
    let mut position = create(&store, &session).await;
    let mut written = 1;
    let error = loop {
        let mut next = append(&session, &position, &format!("a{written}"));
        next.body = vec![1; 10_000].into();
        let follows = helix_agents_core::store::Position {
            version: position.version + 1,
            append: next.id.clone(),
        };
        match store.append(next).await {
            Ok(_) => position = follows,
            Err(error) => break error,
        }
        written += 1;
        assert!(written < 1000, "the disk was never full");
    };
    assert_eq!((error.code(), error.kind()), (ErrorCode::StoreFull, ErrorKind::LimitExceeded));
    assert_eq!(ids(&store, &session).await.len(), written);
    store.close().await;

    // The session continues when there is space again.
    let store = folder.open().await;
    add(&store, &session, &mut position, "after").await;
    assert_eq!(ids(&store, &session).await.len(), written + 1);
}

#[tokio::test]
async fn a_full_disk_refuses_a_batch_of_a_stream_as_a_whole() {
    let folder = Folder::new();
    let store = SqliteStore::builder(folder.file()).max_pages(64).open().await.unwrap();
    let (session, streams) = (id("s"), streams(&store));
    streams.append_chunks(batch_id(), &session, None, vec![text(&session, "a")]).await.unwrap();
    let before = streams.info(&session).await.unwrap();
    let chunks = |delta: &str| StreamOp::Chunks {
        attempt: Some(AttemptRef::Started(0)),
        chunks: vec![text(&session, delta).into()],
    };
    let beginning =
        StreamOp::Begin { effect: Effect::Model { step: 1 }, origin: text(&session, "").into() };
    let large = StreamOp::Chunks {
        attempt: None,
        chunks: vec![text(&session, &"x".repeat(1 << 20)).into()],
    };
    let batch = vec![beginning, chunks("b"), large, chunks("c")];
    let error = streams
        .write(&session, Batch::new(batch_id(), Writer::without_run(&session), batch))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreFull);
    assert_eq!(streams.info(&session).await.unwrap(), before);
    assert_eq!(
        streams.append_chunks(batch_id(), &session, None, vec![text(&session, "d")]).await.unwrap(),
        2
    );
}

#[tokio::test]
async fn a_file_that_is_locked_for_too_long_is_busy() {
    let folder = Folder::new();
    let builder = SqliteStore::builder(folder.file()).busy_timeout(Duration::from_millis(20));
    let store = builder.open().await.unwrap();
    let session = id("s");
    let mut position = create(&store, &session).await;
    let other = folder.sql();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.append(append(&session, &position, "a")).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (ErrorCode::StoreBusy, true));
    // Readers do not wait for writers.
    assert_eq!(ids(&store, &session).await, ["first"]);
    other.execute_batch("ROLLBACK").unwrap();
    add(&store, &session, &mut position, "a").await;
    assert_eq!(ids(&store, &session).await, ["first", "a"]);
}

fn file_count(folder: &Folder) -> usize {
    std::fs::read_dir(folder.file().parent().unwrap()).unwrap().count()
}

/// A new file has no write-ahead log yet. The reader must not conclude that it has no writer.
#[tokio::test]
async fn a_reader_of_a_new_file_sees_later_writes() {
    let folder = Folder::new();
    let writer = folder.open().await;
    let store = SqliteStore::builder(folder.file()).read_only().open().await.unwrap();
    create(&writer, &id("s")).await;
    assert_eq!(ids(&store, &id("s")).await, ["first"]);
}

#[tokio::test]
async fn reading_creates_no_files_next_to_the_database() {
    let folder = Folder::new();
    refused(SqliteStore::builder(folder.file()).read_only(), ErrorCode::StoreReadOnly).await;
    let store = folder.open().await;
    create(&store, &id("s")).await;
    store.close().await;
    let store = SqliteStore::builder(folder.file()).read_only().open().await.unwrap();
    assert_eq!(ids(&store, &id("s")).await, ["first"]);
    assert_eq!(file_count(&folder), 1);
    let position = store.head(&id("s")).await.unwrap().unwrap().position;
    let error = store.append(append(&id("s"), &position, "second")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreReadOnly);
    store.close().await;
    assert_eq!(file_count(&folder), 1);

    // Appends in the write-ahead log are read, too.
    let writer = folder.open().await;
    create(&writer, &id("t")).await;
    let store = SqliteStore::builder(folder.file()).read_only().open().await.unwrap();
    assert_eq!(ids(&store, &id("t")).await, ["first"]);
}
