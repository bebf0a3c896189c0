//! Replicas that take over with or without the last acknowledged appends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use helix_agents_core::store::{AppendOutcome, Position, RetryingStore, StateStore};

use super::cluster::{Cluster, follows, is_master, until};
use super::server::Server;
use super::support::{Keyspace, add, append, create, id, ids, retrying};

/// A timeout that exceeds the time in which a cluster elects a new master.
const OUTAGE: Duration = Duration::from_secs(60);

/// Disconnects the replica, so that it misses later writes.
fn separate(master: &Server, replica: &Server) {
    replica.pause();
    let mut cut = redis::cmd("CLIENT");
    cut.arg("KILL").arg("TYPE").arg("replica").exec(&mut master.keyspace().server()).unwrap();
}

/// Asserts that a writer that knew of lost appends always gets `HistoryLost`, while the log
/// continues without them.
async fn assert_lost(store: &impl StateStore, session: &str, mut kept: Position, lost: &Position) {
    let session = id(session);
    let before = ids(store, &session).await;
    assert_eq!(before.last().map(String::as_str), Some(kept.append.as_str()));
    for other in ["other", "more", "and more"] {
        let outcome = store.append(append(&session, lost, "after")).await.unwrap();
        assert_eq!(outcome, AppendOutcome::HistoryLost);
        add(store, &session, &mut kept, other).await;
    }
    let after = ids(store, &session).await;
    assert_eq!(after, [before, ["other", "more", "and more"].map(str::to_owned).into()].concat());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_failover_that_lost_appends_leaves_one_history() {
    let mut cluster = Cluster::start().await;
    let replica = cluster.replica().await;
    let keyspace = Keyspace::at(&cluster.nodes[1].url());
    let store = retrying(&keyspace.store().await);
    let names = || (0..).map(|number| format!("s{number}"));
    let here = names().find(|name| cluster.node_of(name) == 0).unwrap();
    let elsewhere = names().find(|name| cluster.node_of(name) != 0).unwrap();
    let mut kept = create(&store, &id(&here)).await;
    add(&store, &id(&here), &mut kept, "kept").await;
    let mut whole = create(&store, &id(&elsewhere)).await;
    follows(&cluster.nodes[0], &replica).await;

    separate(&cluster.nodes[0], &replica);
    let mut lost = kept.clone();
    for name in ["lost", "lost too"] {
        add(&store, &id(&here), &mut lost, name).await;
        add(&store, &id(&elsewhere), &mut whole, name).await;
    }
    cluster.nodes[0].kill();
    replica.unpause();
    until("the replica takes over", || is_master(&replica)).await;

    add(&store, &id(&elsewhere), &mut whole, "after").await;
    let expected = ["first", "lost", "lost too", "after"];
    assert_eq!(ids(&store, &id(&elsewhere)).await, expected);
    assert_lost(&store, &here, kept, &lost).await;
}

/// The observations of one writer.
struct Seen {
    session: String,
    acknowledged: Vec<String>,
    is_lost: bool,
}

/// Appends until it is stopped or gets `HistoryLost`.
async fn write(
    store: RetryingStore,
    session: String,
    stop: Arc<AtomicBool>,
    appends: Arc<AtomicUsize>,
) -> Seen {
    let mut position = create(&store, &id(&session)).await;
    let mut acknowledged = vec!["first".to_owned()];
    let mut is_lost = false;
    while !stop.load(Ordering::Relaxed) && !is_lost {
        let name = format!("a{}", position.version);
        match store.append(append(&id(&session), &position, &name)).await.unwrap() {
            AppendOutcome::Appended { .. } => {
                position = Position { version: position.version + 1, append: (&*name).into() };
                acknowledged.push(name);
                appends.fetch_add(1, Ordering::Relaxed);
            }
            AppendOutcome::HistoryLost => is_lost = true,
            other => panic!("unexpected outcome: {other:?}"),
        }
    }
    Seen { session, acknowledged, is_lost }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_during_appends_creates_no_second_history() {
    let mut cluster = Cluster::start().await;
    let replica = cluster.replica().await;
    let keyspace = Keyspace::at(&cluster.nodes[1].url());
    let store = retrying(&keyspace.store().await);
    let (stop, appends) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let names: Vec<String> = (0..12).map(|number| format!("s{number}")).collect();
    assert!((0..3).all(|node| names.iter().any(|name| cluster.node_of(name) == node)));
    let start = |name: &String| {
        let write = write(store.clone(), name.clone(), Arc::clone(&stop), Arc::clone(&appends));
        tokio::spawn(write)
    };
    let writing: Vec<_> = names.iter().map(start).collect();
    until("all writers append", || appends.load(Ordering::Relaxed) > 200).await;
    // The replica must at least have the sessions, even if it lacks their last appends.
    follows(&cluster.nodes[0], &replica).await;
    cluster.nodes[0].kill();
    until("the replica takes over", || is_master(&replica)).await;
    let before = appends.load(Ordering::Relaxed);
    until("all writers continue", || appends.load(Ordering::Relaxed) > before + 400).await;
    stop.store(true, Ordering::Relaxed);

    for writer in writing {
        let Seen { session, acknowledged, is_lost } =
            tokio::time::timeout(OUTAGE, writer).await.unwrap().unwrap();
        let found = ids(&store, &id(&session)).await;
        if is_lost {
            assert_eq!(cluster.node_of(&session), 0, "only sessions on that node can lose appends");
            assert!(acknowledged.starts_with(&found), "{session}: {found:?}");
        } else {
            assert_eq!(found, acknowledged, "{session}");
        }
    }
}

/// Without a cluster, an operator or their tool decides which server is the master.
#[tokio::test]
async fn a_promoted_replica_that_lacks_appends_leaves_one_history() {
    let (mut master, replica) = (Server::start(), Server::start());
    let keyspace = master.keyspace();
    let mut follow = redis::cmd("REPLICAOF");
    follow.arg("127.0.0.1").arg(master.port()).exec(&mut replica.keyspace().server()).unwrap();
    let store = keyspace.store().await;
    let mut kept = create(&store, &id("s")).await;
    add(&store, &id("s"), &mut kept, "kept").await;
    follows(&master, &replica).await;
    separate(&master, &replica);
    let mut lost = kept.clone();
    for name in ["lost", "lost too"] {
        add(&store, &id("s"), &mut lost, name).await;
    }
    master.kill();
    replica.unpause();
    let mut promote = redis::cmd("REPLICAOF");
    promote.arg("NO").arg("ONE").exec(&mut replica.keyspace().server()).unwrap();
    let keyspace = keyspace.moved_to(&replica.url());
    let store = keyspace.store().await;
    assert_lost(&store, "s", kept, &lost).await;
}
