//! Deleting sessions.

use std::time::Duration;

use bytes::Bytes;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::{
    Append, AppendOutcome, Page, Position, Purge, SessionFilter, SessionStatus,
};

use super::StoreHarness;
use super::support::{LONG, Writer, alone, append, child, first, id, run, still};

/// Nothing of it can be read, listed or written any more; others stay.
pub async fn deleting_forgets_the_session(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let other = Writer::create(&store, "other").await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    assert!(store.delete(&writer.session).await.unwrap());

    assert_eq!(store.head(&writer.session).await.unwrap(), None);
    let codes = [
        store.read_log(&writer.session, 0, 10).await.unwrap_err().code(),
        store.append(writer.next("b")).await.unwrap_err().code(),
        store.renew(&writer.session, &run("r"), LONG).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [ErrorCode::SessionNotFound; 3]);
    let listed = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(still).collect();
    assert_eq!(listed, [other.head().await]);
    assert_eq!(other.ids().await, ["first"]);
}

/// And theirs; but neither the parent nor its other children.
pub async fn deleting_takes_the_children_along(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let root = id("root");
    Writer::create(&store, "root").await;
    for (name, parent) in [
        ("child", "root"),
        ("sibling", "root"),
        ("grandchild", "child"),
        ("great-grandchild", "grandchild"),
        ("nephew", "sibling"),
    ] {
        Writer::create_as(&store, child(&id(parent), &root), first(&id(name), "first")).await;
    }
    assert!(store.delete(&id("child")).await.unwrap());
    let left = |names: &[&str]| {
        let mut names: Vec<_> = names.iter().map(|name| id(name)).collect();
        names.sort();
        names
    };
    let listed = async || {
        let heads = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
        let mut names: Vec<_> = heads.into_iter().map(|it| it.session).collect();
        names.sort();
        names
    };
    assert_eq!(listed().await, left(&["root", "sibling", "nephew"]));
    assert!(store.delete(&root).await.unwrap());
    assert_eq!(listed().await, []);
}

/// Not where it lies, either, once no fork shares it. A harness that cannot look there asks for nothing.
pub async fn nothing_of_a_deleted_session_is_kept(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let marked = |mark: &str| Bytes::from(format!("the body of {mark}"));
    let kept = async |mark: &str| harness.keeps(&marked(mark)).await;
    let mut writer = Writer::create(&store, "s").await;
    for mark in ["shared-with-a-fork", "not-shared"] {
        let next = Append { body: marked(mark), ..writer.next(mark) };
        writer.take(next).await;
    }
    let Some(is_kept) = kept("not-shared").await else { return };
    assert!(is_kept, "the harness looks in the wrong place");
    let fork = id("fork");
    let position = writer.log().await[1].position();
    let own = append(&fork, &position, "own");
    let own = Append { summary: first(&fork, "own").summary, body: marked("the-fork"), ..own };
    store.fork(&writer.session, alone(&fork), own).await.unwrap();

    assert!(store.delete(&writer.session).await.unwrap());
    assert_eq!(kept("not-shared").await, Some(false));
    assert_eq!(kept("shared-with-a-fork").await, Some(true));
    let purge = Purge { older_than: Duration::ZERO, statuses: SessionStatus::ALL.to_vec() };
    assert_eq!(store.purge(&purge).await.unwrap(), 1);
    for mark in ["shared-with-a-fork", "the-fork"] {
        assert_eq!(kept(mark).await, Some(false), "{mark}");
    }
}

/// The answer says that there was nothing.
pub async fn deleting_again_is_no_error(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    assert!(store.delete(&writer.session).await.unwrap());
    assert!(!store.delete(&writer.session).await.unwrap());
    assert!(!store.delete(&id("never")).await.unwrap());
}

/// It begins at the beginning, and a writer of the old one is told that its log is gone.
pub async fn a_deleted_session_can_be_created_anew(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut old = Writer::create(&store, "s").await;
    old.add("a").await;
    store.delete(&old.session).await.unwrap();
    let new = {
        let session = id("s");
        let first = first(&session, "new");
        Writer::create_as(&store, alone(&session), first).await
    };
    assert_eq!(new.ids().await, ["new"]);
    let late = store.append(old.next("b")).await.unwrap();
    assert_eq!(late, AppendOutcome::HistoryLost);
    let late = append(&old.session, &Position { version: 1, append: "first".into() }, "a");
    assert_eq!(store.append(late).await.unwrap(), AppendOutcome::HistoryLost);
    assert_eq!(new.ids().await, ["new"]);
}
