//! Closing a store.

use std::time::Duration;

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::StateStore as _;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::within;

use super::support::{Folder, append, create, id, streams, text};

#[tokio::test]
async fn a_closed_store_fails_with_closed() {
    let folder = Folder::new();
    let store = folder.open().await;
    let handle = store.clone();
    let position = create(&store, &id("s")).await;
    let mut reader = streams(&store).read(&id("s"), 1).await.unwrap();
    within(store.close()).await;
    within(handle.close()).await;

    let append = handle.append(append(&id("s"), &position, "a")).await;
    assert_eq!(append.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(handle.head(&id("s")).await.unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(streams(&handle).info(&id("s")).await.unwrap_err().code(), ErrorCode::Closed);
    let read = streams(&handle).read(&id("s"), 1).await;
    assert_eq!(read.err().unwrap().code(), ErrorCode::Closed);
    let end = within(reader.next()).await.unwrap();
    assert_eq!(end.unwrap_err().code(), ErrorCode::Closed);
    assert!(within(reader.next()).await.is_none());
}

#[tokio::test]
async fn closing_leaves_one_file() {
    let folder = Folder::new();
    let store = folder.open().await;
    create(&store, &id("s")).await;
    // A waiting reader, so that the polling thread runs, too.
    let reader = streams(&store).read(&id("s"), 1).await.unwrap();
    within(store.close()).await;
    let files = std::fs::read_dir(folder.file().parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "the write-ahead log was not checkpointed into the database");
    drop(reader);
}

#[tokio::test]
async fn dropping_all_handles_closes_the_file() {
    let folder = Folder::new();
    let never = Duration::from_secs(3600);
    let store = SqliteStore::builder(folder.file()).poll_interval(never).open().await.unwrap();
    create(&store, &id("s")).await;
    let mut reader = streams(&store).read(&id("s"), 1).await.unwrap();
    for _ in 0..200 {
        // The poller now sleeps for an hour unless it is notified to end.
        streams(&store)
            .append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")])
            .await
            .unwrap();
        within(reader.next()).await.unwrap().unwrap();
    }
    let other = store.clone();
    drop((store, reader, other));
    within(async {
        while std::fs::read_dir(folder.file().parent().unwrap()).unwrap().count() > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
