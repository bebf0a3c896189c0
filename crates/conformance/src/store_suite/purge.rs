//! Scenarios for purging old sessions.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::store::{
    AppendOutcome, LeaseChange, Page, Purge, SessionFilter, SessionStatus, StateStore,
};

use super::StoreHarness;
use super::support::{LONG, Writer, append, child, first, id, idle, now, run};

/// Creates a session with this status.
async fn session(store: &Arc<dyn StateStore>, name: &str, status: SessionStatus) {
    ended(Writer::create(store, name).await, status).await;
}

async fn below(store: &Arc<dyn StateStore>, name: &str, parent: &str, root: &str) {
    let first = first(&id(name), "first");
    let writer = Writer::create_as(store, child(&id(parent), &id(root)), first).await;
    ended(writer, SessionStatus::Completed).await;
}

async fn ended(mut writer: Writer, status: SessionStatus) {
    let mut append = writer.next("ended");
    append.summary = Some(helix_agents_core::store::Summary { status, ..idle() });
    writer.take(append).await;
}

async fn left(store: &Arc<dyn StateStore>) -> Vec<String> {
    let heads = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    let mut names: Vec<_> = heads.iter().map(|head| head.session.to_string()).collect();
    names.sort();
    names
}

/// Returns a purge of sessions with these statuses, whatever their age.
fn all(statuses: &[SessionStatus]) -> Purge {
    Purge { older_than: Duration::ZERO, statuses: statuses.to_vec() }
}

/// A purge selects a tree by the status of its root and deletes all sessions of the tree. The status of a child does
/// not matter.
pub async fn purging_forgets_whole_trees_by_the_state_of_their_root(harness: &impl StoreHarness) {
    let store = harness.open().await;
    session(&store, "completed", SessionStatus::Completed).await;
    below(&store, "child", "completed", "completed").await;
    below(&store, "grandchild", "child", "completed").await;
    session(&store, "failed", SessionStatus::Failed).await;
    session(&store, "aborted", SessionStatus::Aborted).await;
    session(&store, "waits", SessionStatus::Active).await;
    below(&store, "ended child", "waits", "waits").await;
    let purge = all(&[SessionStatus::Completed, SessionStatus::Failed]);
    assert_eq!(store.purge(&purge).await.unwrap(), 4);
    assert_eq!(left(&store).await, ["aborted", "ended child", "waits"]);
    assert_eq!(store.purge(&purge).await.unwrap(), 0);
    assert_eq!(store.purge(&all(&[])).await.unwrap(), 0, "no status is given");
    assert_eq!(left(&store).await.len(), 3);
}

/// A purge keeps sessions whose last append is more recent than `older_than`, by the store's clock.
pub async fn recent_sessions_are_not_purged(harness: &impl StoreHarness) {
    let store = harness.open().await;
    session(&store, "s", SessionStatus::Completed).await;
    let hour = Purge { older_than: LONG, ..all(&SessionStatus::ALL) };
    assert_eq!(store.purge(&hour).await.unwrap(), 0);
    let ever = Purge { older_than: Duration::MAX, ..hour };
    assert_eq!(store.purge(&ever).await.unwrap(), 0);
    assert_eq!(left(&store).await, ["s"]);
}

/// A purge determines the age of a session from its last append, not from its creation, because an old conversation may
/// be in use.
pub async fn an_old_session_with_a_late_append_is_not_purged(harness: &impl StoreHarness) {
    let store = harness.open().await;
    // Its status is not purged, so it stays and provides the store's time.
    session(&store, "clock", SessionStatus::Completed).await;
    // The purge must follow the append quickly, which takes several tries on a busy machine.
    for doubled in 0..6 {
        let age = Duration::from_millis(50 << doubled);
        let mut writer = Writer::create(&store, &format!("s{doubled}")).await;
        let created = writer.head().await.created_at;
        while now(&store, &writer.session).await < created.after(age) {
            tokio::task::yield_now().await;
        }
        let late = writer.add("late").await;
        let purge = Purge { older_than: age, ..all(&[SessionStatus::Active]) };
        store.purge(&purge).await.unwrap();
        let is_there = store.head(&writer.session).await.unwrap().is_some();
        if now(&store, &id("clock")).await < late.after(age) {
            assert!(is_there, "purged within {age:?} of its last append");
            return;
        }
    }
    panic!("the store took longer than a second for a purge, each time");
}

/// A purge keeps a whole tree while the lease of any of its sessions is held, here the lease of a child.
pub async fn a_tree_with_an_active_run_is_not_purged(harness: &impl StoreHarness) {
    let store = harness.open().await;
    session(&store, "s", SessionStatus::Completed).await;
    let mut works = first(&id("child"), "first");
    works.lease = LeaseChange::Take(LONG);
    works.summary.as_mut().unwrap().run = Some(run("r"));
    Writer::create_as(&store, child(&id("s"), &id("s")), works).await;
    assert_eq!(store.purge(&all(&SessionStatus::ALL)).await.unwrap(), 0);
    assert_eq!(left(&store).await, ["child", "s"]);
}

/// A purge deletes a child whose parent does not exist, with its descendants. The child's own status and age decide. An
/// interrupted import or a concurrent deletion can leave such a child.
pub async fn children_whose_parent_is_gone_are_purged(harness: &impl StoreHarness) {
    let store = harness.open().await;
    below(&store, "left", "never", "never").await;
    below(&store, "grandchild", "left", "never").await;
    session(&store, "waits", SessionStatus::Active).await;
    below(&store, "child", "waits", "waits").await;
    below(&store, "left below", "gone", "waits").await;
    assert_eq!(store.purge(&all(&[SessionStatus::Failed])).await.unwrap(), 0);
    let hour = Purge { older_than: LONG, ..all(&SessionStatus::ALL) };
    assert_eq!(store.purge(&hour).await.unwrap(), 0);
    assert_eq!(store.purge(&all(&[SessionStatus::Completed])).await.unwrap(), 3);
    assert_eq!(left(&store).await, ["child", "waits"]);
}

/// A child whose parent does not exist counts as a root and is purged by its own status. Purging or deleting the child
/// does not affect other such children of the same tree.
pub async fn orphans_of_one_tree_are_purged_and_deleted_separately(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for name in ["completed", "deleted", "child of deleted"] {
        let parent = if name == "child of deleted" { "deleted" } else { "never" };
        below(&store, name, parent, "never").await;
    }
    for name in ["failed", "other"] {
        let first = first(&id(name), "first");
        let writer = Writer::create_as(&store, child(&id("never"), &id("never")), first).await;
        ended(writer, SessionStatus::Failed).await;
    }
    assert!(store.delete(&id("deleted")).await.unwrap());
    assert_eq!(left(&store).await, ["completed", "failed", "other"]);
    assert_eq!(store.purge(&all(&[SessionStatus::Completed])).await.unwrap(), 1);
    assert_eq!(left(&store).await, ["failed", "other"]);
}

/// A purge of the original keeps the appends that it shares with a fork. The fork can still be read and continued.
pub async fn shared_appends_survive_a_purge(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut original = Writer::create(&store, "s").await;
    original.add("a").await;
    let first = append(&id("fork"), &original.position, "fork");
    let first = helix_agents_core::store::Append {
        summary: Some(helix_agents_core::store::Summary {
            status: SessionStatus::Failed,
            ..idle()
        }),
        ..first
    };
    let new = super::support::root_session(&id("fork"));
    store.fork(&id("s"), new, first).await.unwrap();
    ended(original, SessionStatus::Completed).await;
    assert_eq!(store.purge(&all(&[SessionStatus::Completed])).await.unwrap(), 1);
    let log = super::support::log(&store, &id("fork")).await;
    assert_eq!(super::support::ids(&log), ["first", "a", "fork"]);
    let position = log.last().unwrap().position();
    let next = store.append(append(&id("fork"), &position, "next")).await.unwrap();
    assert!(matches!(next, AppendOutcome::Appended { .. }), "{next:?}");
}

/// One purge deletes 150 completed sessions and keeps the session with another status. A purged id can be used for a
/// new session.
pub async fn many_sessions_are_purged_at_once(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for n in 0..150 {
        session(&store, &format!("s{n}"), SessionStatus::Completed).await;
    }
    session(&store, "stays", SessionStatus::Interrupted).await;
    assert_eq!(store.purge(&all(&[SessionStatus::Completed])).await.unwrap(), 150);
    assert_eq!(left(&store).await, ["stays"]);
    session(&store, "s0", SessionStatus::Completed).await;
    assert_eq!(left(&store).await, ["s0", "stays"]);
}
