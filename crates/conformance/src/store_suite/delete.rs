//! Scenarios for deleting sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::{
    Append, AppendOutcome, NewSession, Page, Position, Purge, SessionFilter, SessionStatus,
};

use super::StoreHarness;
use super::support::{
    LONG, Writer, append, child, first, id, root_session, run, with_fixed_read_time,
};

/// A deleted session cannot be read, listed or written. Other sessions stay.
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
    let listed: Vec<_> = listed.into_iter().map(with_fixed_read_time).collect();
    assert_eq!(listed, [other.head().await]);
    assert_eq!(other.ids().await, ["first"]);
}

/// Deleting a session deletes its descendants too. Its parent and its siblings, with their children, are kept.
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
        let mut names: Vec<_> = heads.into_iter().map(|head| head.session).collect();
        names.sort();
        names
    };
    assert_eq!(listed().await, left(&["root", "sibling", "nephew"]));
    assert!(store.delete(&root).await.unwrap());
    assert_eq!(listed().await, []);
}

/// The stored data of a deleted session is erased, except for appends that a fork shares. Shared appends are erased
/// when the fork is purged. The check is skipped if the harness cannot inspect the data.
pub async fn nothing_of_a_deleted_session_is_kept(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let marked = |mark: &str| Bytes::from(format!("the body of {mark}"));
    let kept = async |mark: &str| harness.contains_bytes(&marked(mark)).await;
    let mut writer = Writer::create(&store, "s").await;
    for mark in ["shared-with-a-fork", "not-shared"] {
        let next = Append { body: marked(mark), ..writer.next(mark) };
        writer.take(next).await;
    }
    let Some(is_kept) = kept("not-shared").await else { return };
    assert!(is_kept, "the harness inspects the wrong place");
    let fork = id("fork");
    let position = writer.log().await[1].position();
    let own = append(&fork, &position, "own");
    let own = Append { summary: first(&fork, "own").summary, body: marked("the-fork"), ..own };
    store.fork(&writer.session, root_session(&fork), own).await.unwrap();

    assert!(store.delete(&writer.session).await.unwrap());
    assert_eq!(kept("not-shared").await, Some(false));
    assert_eq!(kept("shared-with-a-fork").await, Some(true));
    let purge = Purge { older_than: Duration::ZERO, statuses: SessionStatus::ALL.to_vec() };
    assert_eq!(store.purge(&purge).await.unwrap(), 1);
    for mark in ["shared-with-a-fork", "the-fork"] {
        assert_eq!(kept(mark).await, Some(false), "{mark}");
    }
}

/// Deleting a session that was already deleted or never existed returns `false` and is not an error.
pub async fn deleting_again_is_no_error(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    assert!(store.delete(&writer.session).await.unwrap());
    assert!(!store.delete(&writer.session).await.unwrap());
    assert!(!store.delete(&id("never")).await.unwrap());
}

/// A session that is created with the id of a deleted session starts with an empty log. A writer of the deleted session
/// gets `HistoryLost`.
pub async fn a_deleted_session_can_be_created_anew(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut old = Writer::create(&store, "s").await;
    old.add("a").await;
    store.delete(&old.session).await.unwrap();
    let new = {
        let session = id("s");
        let first = first(&session, "new");
        Writer::create_as(&store, root_session(&session), first).await
    };
    assert_eq!(new.ids().await, ["new"]);
    let late = store.append(old.next("b")).await.unwrap();
    assert_eq!(late, AppendOutcome::HistoryLost);
    let late = append(&old.session, &Position { version: 1, append: "first".into() }, "a");
    assert_eq!(store.append(late).await.unwrap(), AppendOutcome::HistoryLost);
    assert_eq!(new.ids().await, ["new"]);
}

/// A conditional deletion deletes a session with all required tags, together with its descendants. A session that
/// lacks one of them stays, with its log.
pub async fn only_a_session_with_the_required_tags_is_deleted(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("s");
    let tags = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let new = NewSession {
        tags: tags(&[("owner", "ann"), ("topic", "tides")]),
        ..root_session(&session)
    };
    let mut writer = Writer::create_as(&store, new, first(&session, "first")).await;
    writer.add("a").await;
    Writer::create_as(&store, child(&session, &session), first(&id("child"), "first")).await;
    for lacking in [
        tags(&[("owner", "bob")]),
        tags(&[("owner", "")]),
        tags(&[("own", "ann")]),
        tags(&[("owner", "ann"), ("topic", "rivers")]),
    ] {
        assert!(!store.delete_if(&session, &lacking).await.unwrap(), "{lacking:?}");
    }
    assert_eq!(writer.ids().await, ["first", "a"]);
    assert!(store.head(&id("child")).await.unwrap().is_some());
    assert!(!store.delete_if(&id("never"), &tags(&[("owner", "ann")])).await.unwrap());
    assert!(store.delete_if(&session, &tags(&[("owner", "ann")])).await.unwrap());
    assert_eq!(store.head(&session).await.unwrap(), None);
    assert_eq!(store.head(&id("child")).await.unwrap(), None);
}
