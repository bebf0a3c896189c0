//! Scenarios for snapshots of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Event, SCHEMA, Trigger, encode};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{Session, SessionReader, load};
use helix_agents_core::store::{
    Append, ForkOutcome, MAX_APPEND_BYTES, Position, Purge, SessionStatus, Snapshot, StateStore,
};

use super::StoreHarness;
use super::support::{Writer, append, head, id, idle, root_session};
use crate::faults::FaultStore;

/// Returns a snapshot at a position with the body `text`.
fn snapshot_at(position: &Position, text: &str) -> Snapshot {
    Snapshot { position: position.clone(), fold: 1, body: Bytes::copy_from_slice(text.as_bytes()) }
}

async fn save(store: &Arc<dyn StateStore>, session: &SessionId, snapshot: &Snapshot) {
    store.save_snapshot(session, snapshot.clone()).await.unwrap();
}

/// Returns the text of a session's snapshot.
async fn snapshot_text(store: &Arc<dyn StateStore>, session: &SessionId) -> Option<String> {
    let found = store.snapshot(session).await.unwrap();
    found.map(|snapshot| String::from_utf8(snapshot.body.to_vec()).unwrap())
}

/// Every handle reads a saved snapshot unchanged, including a handle that was opened later. A store that keeps no
/// snapshots accepts them and returns none.
pub async fn a_snapshot_is_read_back_as_it_was_saved(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    assert_eq!(store.snapshot(&writer.session).await.unwrap(), None);
    writer.add("a").await;
    let (before, log) = (writer.head().await, writer.log().await);
    let body = (0..=u8::MAX).collect();
    let saved = Snapshot { position: writer.position.clone(), fold: u32::MAX, body };
    save(&store, &writer.session, &saved).await;
    let kept = harness.keeps_snapshots().then_some(&saved);
    assert_eq!(store.snapshot(&writer.session).await.unwrap().as_ref(), kept);
    let other = harness.open().await;
    assert_eq!(other.snapshot(&writer.session).await.unwrap().as_ref(), kept);
    assert_eq!(
        (writer.head().await, writer.log().await),
        (before, log),
        "it is not part of the log"
    );
    writer.add("b").await;
    assert_eq!(store.snapshot(&writer.session).await.unwrap().as_ref(), kept, "the log goes on");
}

/// A store keeps the snapshot of the highest version, regardless of the order in which snapshots are saved. Of several
/// snapshots at one version, the last one is kept.
pub async fn the_newest_snapshot_is_kept(harness: &impl StoreHarness) {
    if !harness.keeps_snapshots() {
        return;
    }
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let mut positions = vec![writer.position.clone()];
    for name in ["a", "b"] {
        writer.add(name).await;
        positions.push(writer.position.clone());
    }
    let [one, two, three] = positions.try_into().unwrap();
    let session = &writer.session;
    save(&store, session, &snapshot_at(&one, "one")).await;
    assert_eq!(snapshot_text(&store, session).await.as_deref(), Some("one"));
    save(&store, session, &snapshot_at(&three, "three")).await;
    save(&store, session, &snapshot_at(&two, "two")).await;
    assert_eq!(snapshot_text(&store, session).await.as_deref(), Some("three"));
    let other = Snapshot { fold: 2, ..snapshot_at(&three, "three, folded otherwise") };
    save(&store, session, &other).await;
    assert_eq!(store.snapshot(session).await.unwrap(), Some(other));
}

/// If several handles save snapshots of one session concurrently, the snapshot of the highest version is kept.
pub async fn of_racing_snapshots_the_newest_is_kept(harness: &impl StoreHarness) {
    if !harness.keeps_snapshots() {
        return;
    }
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let mut snapshots = Vec::new();
    for number in 0..20 {
        writer.add(&format!("append {number}")).await;
        snapshots.push(snapshot_at(&writer.position, &number.to_string()));
    }
    let (mut stores, session) = (Vec::new(), &writer.session);
    for _ in 0..2 {
        stores.push(harness.open().await);
    }
    let saved = snapshots.iter().rev().zip(stores.iter().cycle());
    join_all(saved.map(|(snapshot, store)| save(store, session, snapshot))).await;
    assert_eq!(snapshot_text(&store, session).await.as_deref(), Some("19"));
}

/// A snapshot at a version beyond the end of the log is not kept. Saving it is not an error, because nothing is lost,
/// and neither is saving a snapshot of a missing session.
pub async fn a_snapshot_beyond_the_log_is_not_kept(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    let beyond = Position { version: 2, append: "never".into() };
    save(&store, &writer.session, &snapshot_at(&beyond, "beyond")).await;
    assert_eq!(snapshot_text(&store, &writer.session).await, None);
    save(&store, &id("missing"), &snapshot_at(&writer.position, "of no session")).await;
    assert_eq!(snapshot_text(&store, &id("missing")).await, None);
    Writer::create(&store, "missing").await;
    assert_eq!(snapshot_text(&store, &id("missing")).await, None);
}

/// Deleting or purging a session removes its snapshot. A new session with the same id starts without a snapshot and can
/// save its own.
pub async fn a_snapshot_goes_with_its_session(harness: &impl StoreHarness) {
    if !harness.keeps_snapshots() {
        return;
    }
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    save(&store, &writer.session, &snapshot_at(&writer.position, "of the first life")).await;
    assert!(store.delete(&writer.session).await.unwrap());
    assert_eq!(snapshot_text(&store, &writer.session).await, None);
    save(&store, &writer.session, &snapshot_at(&writer.position, "too late")).await;
    let again = Writer::create(&store, "s").await;
    assert_eq!(snapshot_text(&store, &again.session).await, None);
    save(&store, &again.session, &snapshot_at(&again.position, "of the second life")).await;
    assert_eq!(snapshot_text(&store, &again.session).await.as_deref(), Some("of the second life"));
    let purge = Purge { statuses: vec![SessionStatus::Active], older_than: Duration::ZERO };
    assert_eq!(store.purge(&purge).await.unwrap(), 1);
    assert_eq!(snapshot_text(&store, &again.session).await, None);
    let last = Writer::create(&store, "s").await;
    assert_eq!(snapshot_text(&store, &last.session).await, None);
}

/// A fork does not inherit the snapshot of its original, because a snapshot contains the id of its session. The fork
/// and the original keep separate snapshots.
pub async fn a_fork_has_no_snapshot_of_its_original(harness: &impl StoreHarness) {
    if !harness.keeps_snapshots() {
        return;
    }
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    let position = &writer.position;
    save(&store, &writer.session, &snapshot_at(position, "original")).await;
    let fork = id("fork");
    let mut first = append(&fork, position, "fork begins");
    first.summary = Some(idle());
    let outcome = store.fork(&writer.session, root_session(&fork), first).await.unwrap();
    assert!(matches!(outcome, ForkOutcome::Created { .. }), "{outcome:?}");
    assert_eq!(snapshot_text(&store, &fork).await, None);
    save(&store, &fork, &snapshot_at(&head(&store, &fork).await.position, "fork")).await;
    assert_eq!(snapshot_text(&store, &writer.session).await.as_deref(), Some("original"));
    assert!(store.delete(&writer.session).await.unwrap());
    assert_eq!(snapshot_text(&store, &fork).await.as_deref(), Some("fork"));
}

/// A snapshot that is larger than `MAX_APPEND_BYTES` fails with `too_large`. A snapshot of exactly that size is
/// accepted.
pub async fn a_snapshot_over_the_limit_is_too_large(harness: &impl StoreHarness) {
    if !harness.keeps_snapshots() {
        return;
    }
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    let of_size = |bytes: usize| Snapshot {
        position: writer.position.clone(),
        fold: 1,
        body: Bytes::from(vec![b'x'; bytes]),
    };
    let refused = store.save_snapshot(&writer.session, of_size(MAX_APPEND_BYTES + 1)).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::TooLarge);
    assert_eq!(store.snapshot(&writer.session).await.unwrap(), None);
    save(&store, &writer.session, &of_size(MAX_APPEND_BYTES)).await;
    let kept = store.snapshot(&writer.session).await.unwrap().map(|snapshot| snapshot.body.len());
    assert_eq!(kept, Some(MAX_APPEND_BYTES));
}

/// Number of events in each append of a long log.
const EACH: usize = 500;

/// Creates a session with that many events, and a snapshot before the last append.
async fn long(store: &Arc<dyn StateStore>, name: &str, events: usize) -> Session {
    let (session, run) = (id(name), RunId::from("r"));
    let created = Event::SessionCreated {
        agent: "agent".into(),
        tags: BTreeMap::new(),
        state: Json::empty_object(),
        parent: None,
    };
    let started = Event::RunStarted {
        run: run.clone(),
        after: None,
        trigger: Trigger::Execute,
        runtime: "local".into(),
        stream_from: 0,
        budget: None,
        clears: None,
        trace: None,
    };
    let said = || Event::UserMessages { messages: vec![UserMessage::new("And then?")] };
    let mut fold = Session::new(session.clone());
    let of = |fold: &mut Session, events: &[Event]| {
        let expected = fold.position().clone();
        events.iter().for_each(|event| fold.apply(event, Some(&run)).unwrap());
        let append = append(&session, &expected, &format!("up to {}", fold.position().version));
        let (count, body) = (u32::try_from(events.len()).unwrap(), encode(events).unwrap());
        let (summary, run) = (Some(fold.summary()), Some(run.clone()));
        Append { schema: SCHEMA, count, body, summary, run, ..append }
    };
    let first = of(&mut fold, &[created, started]);
    fold.acknowledge(first.id.clone(), first_at(store, first).await);
    while fold.position().version < events as u64 {
        if fold.position().version as usize + EACH >= events {
            let snapshot = fold.overview().to_snapshot().unwrap();
            save(store, &session, &snapshot).await;
        }
        let more: Vec<_> = std::iter::repeat_with(said).take(EACH).collect();
        let next = of(&mut fold, &more);
        let next_id = next.id.clone();
        fold.acknowledge(next_id, super::support::taken(&store.append(next).await.unwrap()));
    }
    fold
}

async fn first_at(
    store: &Arc<dyn StateStore>,
    first: Append,
) -> helix_agents_core::clock::Timestamp {
    match store.create_session(root_session(&first.session), first).await.unwrap() {
        helix_agents_core::store::CreateOutcome::Created { at } => at,
        other => panic!("{other:?}"),
    }
}

/// The first read of a long log reads the appends since the snapshot and one before it, whatever the length.
/// The ratio of the times is printed, not asserted.
#[expect(clippy::print_stdout, reason = "it prints the times of the reads")]
pub async fn the_first_look_at_a_long_log_reads_its_end(harness: &impl StoreHarness) {
    if !harness.keeps_snapshots() {
        return;
    }
    let store = harness.open().await;
    let mut looks = Vec::new();
    for (name, events) in [("short", 1_000), ("long", 100_000)] {
        let fold = long(&store, name, events).await;
        let counted = FaultStore::new(harness.open().await);
        let start = Instant::now();
        let overview = SessionReader::of(&counted).overview(&id(name)).await.unwrap();
        let took = start.elapsed();
        assert_eq!(overview.position(), fold.position());
        assert_eq!(overview.turn(), fold.turn());
        looks.push((counted.appends_read(), took));
    }
    let [(short, one), (long, hundred)] = looks.try_into().unwrap();
    assert_eq!((short, long), (2, 2), "appends that were read");
    let start = Instant::now();
    load(&*store, &id("long")).await.unwrap();
    let (whole, ratio) = (start.elapsed(), hundred.as_secs_f64() / one.as_secs_f64());
    println!("1,000 events: {one:?}; 100,000: {hundred:?}, {ratio:.2} times; without: {whole:?}");
}
