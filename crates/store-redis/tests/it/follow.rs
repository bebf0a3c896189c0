//! Notification of readers about writes of other stores.

use helix_agents_core::stream::StreamManagerExt as _;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use helix_agents_conformance::ids::batch_id;

use super::support::{Keyspace, id, streams, text};

/// A poll interval that is long enough to exclude polling.
const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_notifies_readers_of_writes_of_other_stores() {
    let keyspace = Keyspace::new();
    let here = keyspace.builder().poll_interval(NEVER).open().await.unwrap();
    let there = keyspace.store().await;
    let (one, two) = (id("one"), id("two"));
    let mut readers = Vec::new();
    for session in [&one, &two, &one] {
        readers.push((session.clone(), streams(&here).read(session, 1).await.unwrap()));
    }
    for number in 1..=5 {
        let write = async {
            tokio::task::yield_now().await;
            for session in [&one, &two] {
                streams(&there)
                    .append_chunks(batch_id(), session, None, vec![text(session, "x")])
                    .await
                    .unwrap();
            }
        };
        let read = join_all(readers.iter_mut().map(|(_, reader)| reader.next()));
        let both = async { tokio::join!(read, write) };
        let (chunks, ()) = tokio::time::timeout(SOON, both).await.unwrap();
        for ((session, _), chunk) in readers.iter().zip(chunks) {
            let chunk = chunk.unwrap().unwrap();
            assert_eq!((chunk.seq, &chunk.chunk.session), (number, session));
        }
    }
}

/// The last reader leaves, and a new one subscribes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_subscribes_after_others_have_left_is_notified() {
    let keyspace = Keyspace::new();
    let here = keyspace.builder().poll_interval(NEVER).open().await.unwrap();
    let there = keyspace.store().await;
    for number in 1..=3 {
        let session = id(&format!("s{number}"));
        let mut reader = streams(&here).read(&session, 1).await.unwrap();
        for seq in 1..=3 {
            // The reader waits before there is a chunk.
            let write = async {
                tokio::task::yield_now().await;
                streams(&there)
                    .append_chunks(batch_id(), &session, None, vec![text(&session, "x")])
                    .await
                    .unwrap();
            };
            let both = async { tokio::join!(reader.next(), write) };
            let (chunk, ()) = tokio::time::timeout(SOON, both).await.unwrap();
            assert_eq!(chunk.unwrap().unwrap().seq, seq);
        }
    }
}

/// The tokio runtime of the listening task is shut down, which can happen if several runtimes share
/// a store.
#[test]
fn readers_of_another_tokio_runtime_continue() {
    let executor = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    };
    let (main, other) = (executor(), executor());
    let keyspace = Keyspace::new();
    let (here, there) = main.block_on(async {
        (keyspace.builder().poll_interval(NEVER).open().await.unwrap(), keyspace.store().await)
    });
    let session = id("s");
    let write = || async {
        streams(&there)
            .append_chunks(batch_id(), &session, None, vec![text(&session, "x")])
            .await
            .unwrap();
    };
    let seq = other.block_on(async {
        let mut reader = streams(&here).read(&session, 1).await.unwrap();
        let (chunk, ()) = tokio::join!(reader.next(), write());
        chunk.unwrap().unwrap().seq
    });
    assert_eq!(seq, 1);
    other.shutdown_timeout(SOON);
    let seq = main.block_on(async {
        let mut reader = streams(&here).read(&session, 2).await.unwrap();
        let both = async { tokio::join!(reader.next(), write()) };
        let (chunk, ()) = tokio::time::timeout(SOON, both).await.unwrap();
        chunk.unwrap().unwrap().seq
    });
    assert_eq!(seq, 2);
}
