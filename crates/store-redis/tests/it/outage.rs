//! Lost connections, and servers that come back: with all they acknowledged, or without the end of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_testkit::ids::batch_id;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::{AppendOutcome, Position, StateStore as _};

use super::server::Server;
use super::support::{Corner, add, append, create, id, ids, patient, patient_streams, text};

const SECONDS: Duration = Duration::from_secs(30);

/// Four sessions grow until they are told to stop; answers how many appends were acknowledged, of each.
async fn write_beside<F: Future<Output = ()>>(corner: &Corner, trouble: F) -> [usize; 4] {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writing = Vec::new();
    for number in 0..4 {
        let (store, stop) = (patient(&corner.store().await), Arc::clone(&stop));
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
    trouble.await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = [0; 4];
    for (count, task) in acknowledged.iter_mut().zip(writing) {
        *count = tokio::time::timeout(SECONDS, task).await.unwrap().unwrap();
    }
    acknowledged
}

/// Every append is there, once and in its place.
async fn assert_whole(corner: &Corner, acknowledged: [usize; 4]) {
    let store = corner.store().await;
    for (number, appends) in acknowledged.into_iter().enumerate() {
        let found = ids(&store, &id(&format!("s{number}"))).await;
        let expected = (1..=appends).map(|it| format!("a{it}"));
        let expected: Vec<String> = std::iter::once("first".to_owned()).chain(expected).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back_costs_nothing_that_was_acknowledged() {
    let mut server = Server::start();
    let corner = server.corner();
    let pause = Duration::from_millis(150);
    let trouble = async {
        for _ in 0..3 {
            tokio::time::sleep(pause).await;
            server.kill();
            tokio::time::sleep(pause).await;
            server.go_on();
        }
        tokio::time::sleep(pause).await;
    };
    let acknowledged = write_beside(&corner, trouble).await;
    assert!(acknowledged.iter().all(|it| *it > 0));
    assert_whole(&corner, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_are_made_again() {
    let server = Server::start();
    let corner = server.corner();
    let mut connection = corner.server();
    let trouble = async {
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes");
            kill.exec(&mut connection).unwrap();
        }
    };
    let acknowledged = write_beside(&corner, trouble).await;
    assert_whole(&corner, acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_misses_nothing_when_its_connections_are_cut() {
    let server = Server::start();
    let corner = server.corner();
    let (here, there) = (corner.store().await, corner.store().await);
    let (here, there) = (patient_streams(&here), patient_streams(&there));
    let session = id("s");
    let mut reader = here.read(&session, 1).await.unwrap();
    let mut connection = corner.server();
    for number in 1..=20_u64 {
        let kind = if number % 2 == 0 { "pubsub" } else { "normal" };
        let mut kill = redis::cmd("CLIENT");
        kill.arg("KILL").arg("TYPE").arg(kind).arg("SKIPME").arg("yes");
        kill.exec(&mut connection).unwrap();
        let written = there.append(batch_id(), &session, None, vec![text(&session, "x")]);
        let read = async { reader.next().await.unwrap().unwrap().seq };
        let both = async { tokio::join!(written, read) };
        let (written, seq) = tokio::time::timeout(SECONDS, both).await.unwrap();
        assert_eq!((written.unwrap(), seq), (number, number));
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable() {
    let mut server = Server::start();
    let corner = server.corner();
    let store = corner.store().await;
    let mut position = create(&store, &id("s")).await;
    server.kill();
    let error = store.append(append(&id("s"), &position, "a")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
    server.go_on();
    add(&patient(&store), &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
}

/// What a replica that lacks the last appends, or a disk that lost them, brings about.
#[tokio::test]
async fn whoever_knew_of_lost_appends_hears_that_history_was_lost() {
    let mut server = Server::start();
    let corner = server.corner();
    let store = patient(&corner.store().await);
    let session = id("s");
    let mut kept = create(&store, &session).await;
    add(&store, &session, &mut kept, "kept").await;
    let before = server.copy();
    let mut lost = kept.clone();
    add(&store, &session, &mut lost, "lost").await;
    server.put_back(&before);

    // Beyond the end of the log, at it under another id, and below it: never a second history.
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
async fn an_append_that_was_cut_off_in_the_middle_is_not_there_at_all() {
    for bytes in [1, 40, 90, 150] {
        let mut server = Server::start();
        let corner = server.corner();
        let store = patient(&corner.store().await);
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

/// The fork lies on another node, which lost nothing: what it shares is not what it was any more.
#[tokio::test]
async fn a_fork_notices_that_what_it_shares_was_lost() {
    let server = Server::start();
    let corner = server.corner();
    let store = corner.store().await;
    let (session, fork) = (id("s"), id("fork"));
    let mut position = create(&store, &session).await;
    add(&store, &session, &mut position, "a").await;
    let first = append(&fork, &position, "fork begins");
    let first =
        helix_agents_core::store::Append { summary: Some(super::support::summary()), ..first };
    store.fork(&session, super::support::child_of(None, &fork), first).await.unwrap();
    assert_eq!(ids(&store, &fork).await, ["first", "a", "fork begins"]);

    let log = corner.keys().into_iter().find(|key| key.ends_with("{s}:log")).unwrap();
    redis::cmd("XDEL").arg(&log).arg("2-0").exec(&mut corner.server()).unwrap();
    let error = store.read_log(&fork, 0, 10).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
    let error = store.read_log(&session, 0, 10).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{error}");
    let at = Position { version: 2, append: "a".into() };
    let outcome = store.append(append(&fork, &at, "late")).await.unwrap();
    assert!(matches!(outcome, AppendOutcome::Conflict { .. } | AppendOutcome::HistoryLost));
}
