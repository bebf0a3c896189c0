//! Scenarios for repetitions, which resolve lost replies.

use std::sync::Arc;

use futures_util::FutureExt as _;

use helix_agents_core::store::{Append, AppendOutcome, CreateOutcome, Guard, LeaseChange};

use super::StoreHarness;
use super::support::{LONG, Writer, first, id, missed, now, root_session, running, taken};

/// A repeated creation with the same first append returns the outcome of the first call, even after
/// later appends. It changes nothing.
pub async fn a_repeated_create_is_answered_as_the_first_time(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("s");
    let create = || store.create_session(root_session(&session), first(&session, "first"));
    let outcome = create().await.unwrap();
    assert!(matches!(outcome, CreateOutcome::Created { .. }));
    assert_eq!(create().await.unwrap(), outcome);

    let mut writer = Writer {
        position: store.head(&session).await.unwrap().unwrap().position,
        store: Arc::clone(&store),
        session: session.clone(),
    };
    writer.add("a").await;
    writer.add("b").await;
    let before = writer.head().await;
    assert_eq!(create().await.unwrap(), outcome);
    assert_eq!(writer.head().await, before);
    assert_eq!(writer.ids().await, ["first", "a", "b"]);
}

/// A repeated append returns the time of the first call. The append is written once.
pub async fn a_repeated_append_is_answered_as_the_first_time(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let append = Append { count: 2, lease: LeaseChange::Take(LONG), ..writer.next("a") };
    let at = writer.take(append.clone()).await;
    let before = writer.head().await;
    for _ in 0..3 {
        assert_eq!(taken(&store.append(append.clone()).await.unwrap()), at);
    }
    assert_eq!(writer.head().await, before);
    assert_eq!(writer.ids().await, ["first", "a"]);
}

/// A repeated append returns the time of the first call even after later appends, because a reply
/// may be lost for a long time.
pub async fn a_repeated_append_is_answered_even_after_later_appends(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let mut all = Vec::new();
    for number in 0..10_u32 {
        let append = Append { count: 1 + number % 3, ..writer.next(&format!("a{number}")) };
        let at = writer.take(append.clone()).await;
        all.push((append, at));
    }
    let before = (writer.head().await, writer.log().await);
    for (append, at) in all {
        assert_eq!(taken(&store.append(append).await.unwrap()), at);
    }
    assert_eq!((writer.head().await, writer.log().await), before);
}

/// A repeated append returns the time of the first call even if its guard no longer holds: its own
/// run has taken the lease, or its deadline has passed.
pub async fn a_repeated_append_is_answered_even_if_its_guard_no_longer_holds(
    harness: &impl StoreHarness,
) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let start = Append {
        summary: Some(running("r")),
        lease: LeaseChange::Take(LONG),
        guard: Guard::LeaseFree,
        ..writer.next("start")
    };
    let at = writer.take(start.clone()).await;
    assert_eq!(taken(&store.append(start).await.unwrap()), at);

    // The deadline is now, so it has passed when the append is repeated.
    let mut answer = writer.next("answer");
    let at = loop {
        answer.guard = Guard::NotAfter(now(&store, &writer.session).await);
        match store.append(answer.clone()).await.unwrap() {
            AppendOutcome::Appended { at } => break at,
            AppendOutcome::GuardFailed { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    while now(&store, &writer.session).await <= at {
        tokio::task::yield_now().await;
    }
    assert_eq!(taken(&store.append(answer).await.unwrap()), at);
    assert_eq!(writer.ids().await, ["first", "start", "answer"]);
}

/// An append with the id of a stored append and another expected position is not a repetition. It
/// is a conflict and is not written.
pub async fn a_repetition_at_another_position_is_no_repetition(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let before_a = writer.position.clone();
    writer.add("a").await;
    let before_b = writer.position.clone();
    writer.add("b").await;

    let mut moved = writer.next("b");
    moved.expected = before_a;
    assert_eq!(missed(store.append(moved).await.unwrap()).len(), 2);
    let mut moved = writer.next("a");
    moved.expected = before_b;
    assert_eq!(missed(store.append(moved).await.unwrap()).len(), 1);
    assert_eq!(writer.ids().await, ["first", "a", "b"]);
}

/// Dropping the future of an append leaves the outcome unknown. Repeating the append resolves it,
/// and the append is written once.
pub async fn an_append_whose_future_was_dropped_can_be_repeated(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let mut expected = vec!["first".to_owned()];
    for number in 0..20_u32 {
        let append = writer.next(&format!("a{number}"));
        expected.push(append.id.to_string());
        let mut dropped = Box::pin(store.append(append.clone()));
        for _ in 0..number % 4 {
            if dropped.as_mut().now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(dropped);
        writer.take(append).await;
    }
    assert_eq!(writer.ids().await, expected);
}
