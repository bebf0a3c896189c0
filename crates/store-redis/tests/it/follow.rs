//! How a reader hears of what another process wrote.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use helix_agents_testkit::ids::batch_id;

use super::support::{Corner, id, streams, text};

/// Long enough that nobody looks by himself.
const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_tells_readers_of_what_others_write() {
    let corner = Corner::new();
    let here = corner.builder().poll_interval(NEVER).open().await.unwrap();
    let there = corner.store().await;
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
                    .append(batch_id(), session, None, vec![text(session, "x")])
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

/// Nobody listens any more, and then somebody again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_listens_after_others_have_left_is_told_too() {
    let corner = Corner::new();
    let here = corner.builder().poll_interval(NEVER).open().await.unwrap();
    let there = corner.store().await;
    for number in 1..=3 {
        let session = id(&format!("s{number}"));
        let mut reader = streams(&here).read(&session, 1).await.unwrap();
        for seq in 1..=3 {
            // It waits before there is anything.
            let write = async {
                tokio::task::yield_now().await;
                streams(&there)
                    .append(batch_id(), &session, None, vec![text(&session, "x")])
                    .await
                    .unwrap();
            };
            let both = async { tokio::join!(reader.next(), write) };
            let (chunk, ()) = tokio::time::timeout(SOON, both).await.unwrap();
            assert_eq!(chunk.unwrap().unwrap().seq, seq);
        }
    }
}

/// The executor on which the listening task ran is gone, as that of a process which shares a store with others may be.
#[test]
fn readers_of_another_executor_go_on() {
    let executor = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    };
    let (main, other) = (executor(), executor());
    let corner = Corner::new();
    let (here, there) = main.block_on(async {
        (corner.builder().poll_interval(NEVER).open().await.unwrap(), corner.store().await)
    });
    let session = id("s");
    let write = || async {
        streams(&there)
            .append(batch_id(), &session, None, vec![text(&session, "x")])
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
