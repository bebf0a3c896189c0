//! Lost connections, and servers that restart with or without the last acknowledged appends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_conformance::ids::batch_id;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::{AppendOutcome, Position, StateStore as _};
use helix_agents_core::stream::StreamManagerExt as _;

use super::server::Server;
use super::support::{Keyspace, add, append, create, id, ids, retrying, retrying_streams, text};

const SECONDS: Duration = Duration::from_secs(30);

/// Appends to four sessions until `fault` has ended. Returns the number of acknowledged appends
/// per session.
async fn write_during<F: Future<Output = ()>>(keyspace: &Keyspace, fault: F) -> [usize; 4] {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writing = Vec::new();
    for number in 0..4 {
        let (store, stop) = (retrying(&keyspace.store().await), Arc::clone(&stop));
        writing.push(tokio::spawn(async move {
            let session = id(&format!("s{number}"));
            let mut position = create(&store, &session).await;
            let mut appends = 0;
            while !stop.load(Ordering::Relaxed) {
                appends += 1;
                add(&store, &session, &mut position, &format!("a{appends}")).await;
            }
            appends
        }));
    }
    fault.await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = [0; 4];
    for (count, task) in acknowledged.iter_mut().zip(writing) {
        *count = tokio::time::timeout(SECONDS, task).await.unwrap().unwrap();
    }
    acknowledged
}

/// Asserts that every append is in the log once, in order.
async fn assert_whole(keyspace: &Keyspace, acknowledged: [usize; 4]) {
    let store = keyspace.store().await;
    for (number, appends) in acknowledged.into_iter().enumerate() {
        let found = ids(&store, &id(&format!("s{number}"))).await;
        let expected = (1..=appends).map(|number| format!("a{number}"));
        let expected: Vec<String> = std::iter::once("first".to_owned()).chain(expected).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_restarted_loses_no_acknowledged_append() {
    let mut server = Server::start();
    let keyspace = server.keyspace();
    let pause = Duration::from_millis(150);
    let fault = async {
        for _ in 0..3 {
            tokio::time::sleep(pause).await;
            server.kill();
            tokio::time::sleep(pause).await;
            server.launch();
        }
        tokio::time::sleep(pause).await;
    };
    let acknowledged = write_during(&keyspace, fault).await;
    assert!(acknowledged.iter().all(|appends| *appends > 0));
    assert_whole(&keyspace, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_are_reopened() {
    let server = Server::start();
    let keyspace = server.keyspace();
    let mut connection = keyspace.server();
    let fault = async {
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes");
            kill.exec(&mut connection).unwrap();
        }
    };
    let acknowledged = write_during(&keyspace, fault).await;
    assert_whole(&keyspace, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_misses_nothing_when_its_connections_are_cut() {
    let server = Server::start();
    let keyspace = server.keyspace();
    let (here, there) = (keyspace.store().await, keyspace.store().await);
    let (here, there) = (retrying_streams(&here), retrying_streams(&there));
    let session = id("s");
    let mut reader = here.read(&session, 1).await.unwrap();
    let mut connection = keyspace.server();
    for number in 1..=20_u64 {
        let kind = if number % 2 == 0 { "pubsub" } else { "normal" };
        let mut kill = redis::cmd("CLIENT");
        kill.arg("KILL").arg("TYPE").arg(kind).arg("SKIPME").arg("yes");
        kill.exec(&mut connection).unwrap();
        let written = there.append_chunks(batch_id(), &session, None, vec![text(&session, "x")]);
        let read = async { reader.next().await.unwrap().unwrap().seq };
        let both = async { tokio::join!(written, read) };
        let (written, seq) = tokio::time::timeout(SECONDS, both).await.unwrap();
        assert_eq!((written.unwrap(), seq), (number, number));
    }
}

#[tokio::test]
async fn a_stopped_server_is_unavailable() {
    let mut server = Server::start();
    let keyspace = server.keyspace();
    let store = keyspace.store().await;
    let mut position = create(&store, &id("s")).await;
    server.kill();
    let error = store.append(append(&id("s"), &position, "a")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
    server.launch();
    add(&retrying(&store), &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
}

/// This happens with a replica that lacks the last appends, or a disk that lost them.
#[tokio::test]
async fn a_writer_that_knew_of_lost_appends_gets_history_lost() {
    let mut server = Server::start();
    let keyspace = server.keyspace();
    let store = retrying(&keyspace.store().await);
    let session = id("s");
    let mut kept = create(&store, &session).await;
    add(&store, &session, &mut kept, "kept").await;
    let before = server.copy();
    let mut lost = kept.clone();
    add(&store, &session, &mut lost, "lost").await;
    server.restore(&before);

    // The expected position is beyond the end of the log, then at its end with another id, then
    // below it. None of them creates a second history.
    let outcome = store.append(append(&session, &lost, "after")).await.unwrap();
    assert_eq!(outcome, AppendOutcome::HistoryLost);
    for other in ["other", "more"] {
        add(&store, &session, &mut kept, other).await;
        let outcome = store.append(append(&session, &lost, "after")).await.unwrap();
        assert_eq!(outcome, AppendOutcome::HistoryLost);
    }
    assert_eq!(ids(&store, &session).await, ["first", "kept", "other", "more"]);
}

#[tokio::test]
async fn a_torn_append_is_not_in_the_log() {
    for bytes in [1, 40, 90, 150] {
        let mut server = Server::start();
        let keyspace = server.keyspace();
        let store = retrying(&keyspace.store().await);
        let session = id("s");
        let mut position = create(&store, &session).await;
        add(&store, &session, &mut position, "kept").await;
        let kept = position.clone();
        add(&store, &session, &mut position, "torn").await;
        server.cut(bytes);
        assert_eq!(ids(&store, &session).await, ["first", "kept"], "{bytes} bytes cut off");
        let head = store.head(&session).await.unwrap().unwrap();
        assert_eq!(head.position, kept);
        let outcome = store.append(append(&session, &position, "after")).await.unwrap();
        assert_eq!(outcome, AppendOutcome::HistoryLost);
    }
}

/// The fork may be on another node that lost nothing. The shared appends are no longer what they
/// were.
#[tokio::test]
async fn a_fork_detects_the_loss_of_shared_appends() {
    let server = Server::start();
    let keyspace = server.keyspace();
    let store = keyspace.store().await;
    let (session, fork) = (id("s"), id("fork"));
    let mut position = create(&store, &session).await;
    add(&store, &session, &mut position, "a").await;
    let first = append(&fork, &position, "fork begins");
    let first =
        helix_agents_core::store::Append { summary: Some(super::support::summary()), ..first };
    store.fork(&session, super::support::child_of(None, &fork), first).await.unwrap();
    assert_eq!(ids(&store, &fork).await, ["first", "a", "fork begins"]);

    let log = keyspace.keys().into_iter().find(|key| key.ends_with("{s}:log")).unwrap();
    redis::cmd("XDEL").arg(&log).arg("2-0").exec(&mut keyspace.server()).unwrap();
    let error = store.read_log(&fork, 0, 10).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
    let error = store.read_log(&session, 0, 10).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
    let at = Position { version: 2, append: "a".into() };
    let outcome = store.append(append(&fork, &at, "late")).await.unwrap();
    assert!(matches!(outcome, AppendOutcome::Conflict { .. } | AppendOutcome::HistoryLost));
}
