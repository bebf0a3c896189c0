//! Replicas that take over: with all that was acknowledged, or without the end of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use helix_agents_core::store::{AppendOutcome, Position, RetryingStore, StateStore};

use super::cluster::{Cluster, follows, is_master, until};
use super::server::Server;
use super::support::{Corner, add, append, create, id, ids, patient};

/// Longer than a cluster takes to agree on a new master.
const OUTAGE: Duration = Duration::from_secs(60);

/// Makes the replica miss what is written from now on.
fn separate(master: &Server, replica: &Server) {
    replica.pause();
    let mut cut = redis::cmd("CLIENT");
    cut.arg("KILL").arg("TYPE").arg("replica").exec(&mut master.corner().server()).unwrap();
}

/// Whoever knew of what was lost hears so, again and again, while the log goes on without it.
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
async fn a_node_of_a_cluster_whose_replica_lacks_appends_leaves_one_history() {
    let mut cluster = Cluster::start().await;
    let replica = cluster.replica().await;
    let corner = Corner::at(&cluster.nodes[1].url());
    let store = patient(&corner.store().await);
    let names = || (0..).map(|number| format!("s{number}"));
    let here = names().find(|it| cluster.node_of(it) == 0).unwrap();
    let elsewhere = names().find(|it| cluster.node_of(it) != 0).unwrap();
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

/// What one writer saw.
struct Seen {
    session: String,
    acknowledged: Vec<String>,
    is_lost: bool,
}

/// Appends until it is told to stop, or hears that history was lost.
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
            other => panic!("nobody else writes: {other:?}"),
        }
    }
    Seen { session, acknowledged, is_lost }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_in_the_middle_of_appends_makes_no_second_history() {
    let mut cluster = Cluster::start().await;
    let replica = cluster.replica().await;
    let corner = Corner::at(&cluster.nodes[1].url());
    let store = patient(&corner.store().await);
    let (stop, appends) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let names: Vec<String> = (0..12).map(|number| format!("s{number}")).collect();
    assert!((0..3).all(|node| names.iter().any(|it| cluster.node_of(it) == node)));
    let start = |name: &String| {
        let write = write(store.clone(), name.clone(), Arc::clone(&stop), Arc::clone(&appends));
        tokio::spawn(write)
    };
    let writing: Vec<_> = names.iter().map(start).collect();
    until("all write", || appends.load(Ordering::Relaxed) > 200).await;
    // So that at least the sessions are there, whatever it lacks of their ends.
    follows(&cluster.nodes[0], &replica).await;
    cluster.nodes[0].kill();
    until("the replica takes over", || is_master(&replica)).await;
    let before = appends.load(Ordering::Relaxed);
    until("all go on", || appends.load(Ordering::Relaxed) > before + 400).await;
    stop.store(true, Ordering::Relaxed);

    for writer in writing {
        let Seen { session, acknowledged, is_lost } =
            tokio::time::timeout(OUTAGE, writer).await.unwrap().unwrap();
        let found = ids(&store, &id(&session)).await;
        if is_lost {
            assert_eq!(cluster.node_of(&session), 0, "only what lay on that node can be lost");
            assert!(acknowledged.starts_with(&found), "{session}: {found:?}");
        } else {
            assert_eq!(found, acknowledged, "{session}");
        }
    }
}

/// Without a cluster it is an operator, or a program of theirs, who says which server is the master.
#[tokio::test]
async fn a_replica_that_was_made_master_without_the_last_appends_leaves_one_history() {
    let (mut master, replica) = (Server::start(), Server::start());
    let corner = master.corner();
    let mut follow = redis::cmd("REPLICAOF");
    follow.arg("127.0.0.1").arg(master.port()).exec(&mut replica.corner().server()).unwrap();
    let store = corner.store().await;
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
    promote.arg("NO").arg("ONE").exec(&mut replica.corner().server()).unwrap();
    let corner = corner.moved_to(&replica.url());
    let store = corner.store().await;
    assert_lost(&store, "s", kept, &lost).await;
}
