//! Scenarios for the order, atomicity and position of appends.

use std::sync::Arc;

use bytes::Bytes;

use helix_agents_core::id::AppendId;
use helix_agents_core::store::{
    Append, AppendOutcome, LeaseChange, Position, SessionStatus, Summary,
};

use super::StoreHarness;
use super::support::{LONG, Writer, append, head as head_of, id, idle, ids, log, missed, run};

/// Ids, counts, schemas, runs and bodies are read back in the order in which they were written.
pub async fn appends_are_read_back_whole_and_in_order(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let mut expected = Vec::new();
    for number in 1..=20_u32 {
        let append = Append {
            run: (number % 2 == 0).then(|| run(&format!("r{number}"))),
            schema: u16::try_from(number).unwrap(),
            count: number,
            body: Bytes::from(format!("body {number}").repeat(number as usize)),
            ..writer.next(&format!("a{number}"))
        };
        expected.push((
            append.id.clone(),
            append.run.clone(),
            append.schema,
            append.count,
            append.body.clone(),
        ));
        writer.take(append).await;
    }
    let log = writer.log().await;
    let stored = log
        .into_iter()
        .skip(1)
        .map(|append| (append.id, append.run, append.schema, append.count, append.body));
    assert_eq!(stored.collect::<Vec<_>>(), expected);
}

/// The head of a session has the position, summary, lease and time of the last append. The creation
/// data does not change.
pub async fn the_head_follows_the_last_append(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let before = writer.head().await;
    let summary = Summary {
        status: SessionStatus::Failed,
        run: Some(run("r2")),
        runtime: "temporal".into(),
        pending: 3,
        wake_at: Some(before.created_at.after(LONG)),
    };
    let next = Append {
        count: 4,
        summary: Some(summary.clone()),
        lease: LeaseChange::Take(LONG),
        ..writer.next("a")
    };
    let at = writer.take(next).await;
    let head = writer.head().await;
    assert_eq!(head.position, Position { version: 5, append: AppendId::from("a") });
    assert_eq!((&head.summary, head.updated_at), (&summary, at));
    assert_eq!(head.lease_until, Some(at.after(LONG)));
    assert_eq!((head.created, head.created_at), (before.created, before.created_at));
}

/// An append without a summary keeps the stored summary. External requests append without one,
/// because they do not compute it.
pub async fn an_append_without_a_summary_leaves_the_summary_as_it_is(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let summary = Summary {
        status: SessionStatus::Completed,
        pending: 2,
        wake_at: Some(helix_agents_core::clock::Timestamp(5)),
        ..idle()
    };
    let told = Append { summary: Some(summary.clone()), ..writer.next("a") };
    writer.take(told).await;
    writer.add("b").await;
    let head = writer.head().await;
    assert_eq!((head.position.version, head.summary, head.lease_until), (3, summary, None));
}

/// An append at a stale position is a conflict. It changes neither the log nor the summary nor the
/// lease.
pub async fn an_append_at_a_stale_position_is_a_conflict_and_writes_nothing(
    harness: &impl StoreHarness,
) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let stale = Append {
        summary: Some(Summary { status: SessionStatus::Aborted, ..idle() }),
        lease: LeaseChange::Take(LONG),
        ..writer.next("stale")
    };
    writer.add("a").await;
    let before = writer.head().await;
    let outcome = store.append(stale).await.unwrap();
    assert_eq!(ids(&missed(outcome)), ["a"]);
    assert_eq!(writer.head().await, before);
    assert_eq!(writer.ids().await, ["first", "a"]);
}

/// A conflict returns all missed appends as they were written, from every position of the log.
pub async fn a_conflict_brings_exactly_the_missed_appends(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let mut places = vec![Position::start(), writer.position.clone()];
    for number in 0..5 {
        let next = Append { count: 3, ..writer.next(&format!("a{number}")) };
        writer.take(next).await;
        places.push(writer.position.clone());
    }
    places.pop();
    let log = writer.log().await;
    for (index, place) in places.iter().enumerate() {
        let outcome = store.append(append(&writer.session, place, "late")).await.unwrap();
        assert_eq!(missed(outcome), log[index..]);
    }
    assert_eq!(writer.log().await, log);
}

/// A conflict returns all missed appends, however many there are, so a writer that was inactive for
/// long can catch up.
pub async fn a_conflict_brings_hundreds_of_missed_appends(harness: &impl StoreHarness) {
    const MISSED: usize = 300;
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let stale = writer.next("late");
    for number in 0..MISSED {
        writer.add(&format!("a{number}")).await;
    }
    let missed = missed(store.append(stale).await.unwrap());
    assert_eq!(missed, writer.log().await[1..]);
    assert_eq!(missed.len(), MISSED);
}

/// An append that expects the current version with another append id gets `HistoryLost` and writes
/// nothing: the log was rolled back and continued differently.
pub async fn the_same_version_under_another_id_is_history_lost(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    refused_as_lost(&writer, 2, "never").await;
    refused_as_lost(&writer, 2, "first").await;
    refused_as_lost(&writer, 2, "").await;
}

/// An append that expects a version beyond the end of the log gets `HistoryLost` and writes
/// nothing: the log was rolled back.
pub async fn a_version_beyond_the_log_is_history_lost(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    refused_as_lost(&writer, 3, "a").await;
    refused_as_lost(&writer, 1_000_000, "never").await;
    refused_as_lost(&writer, u64::MAX, "never").await;
}

/// An append that expects an earlier version with a wrong append id gets `HistoryLost`. A conflict
/// would return missed appends that do not follow the writer's position.
pub async fn a_stale_version_under_a_wrong_id_is_history_lost(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    writer.add("b").await;
    refused_as_lost(&writer, 2, "first").await;
    refused_as_lost(&writer, 2, "b").await;
    refused_as_lost(&writer, 1, "").await;
    refused_as_lost(&writer, 0, "first").await;
}

/// An append that expects a version inside a stored append gets `HistoryLost`. Appends are atomic,
/// so no log ends inside one.
pub async fn a_version_in_the_middle_of_an_append_is_history_lost(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let wide = Append { count: 5, ..writer.next("wide") };
    writer.take(wide).await;
    writer.add("a").await;
    for version in 2..6 {
        refused_as_lost(&writer, version, "wide").await;
        refused_as_lost(&writer, version, "first").await;
    }
}

async fn refused_as_lost(writer: &Writer, version: u64, last: &str) {
    let before = (writer.head().await, writer.ids().await);
    let expected = Position { version, append: AppendId::from(last) };
    let outcome = writer.store.append(append(&writer.session, &expected, "x")).await.unwrap();
    assert_eq!(outcome, AppendOutcome::HistoryLost, "at {expected:?}");
    assert_eq!((writer.head().await, writer.ids().await), before);
}

/// The times of successive appends never decrease, even if they are written through different
/// handles. Replies, log and head report the same times.
pub async fn times_never_decrease(harness: &impl StoreHarness) {
    let handles = [harness.open().await, harness.open().await];
    let mut writer = Writer::create(&handles[0], "s").await;
    let mut times = vec![writer.head().await.created_at];
    for number in 0..50 {
        writer.store = Arc::clone(&handles[number % 2]);
        times.push(writer.add(&format!("a{number}")).await);
    }
    assert!(times.is_sorted(), "{times:?}");
    let log = writer.log().await;
    assert_eq!(log.iter().map(|append| append.at).collect::<Vec<_>>(), times);
    assert_eq!(writer.head().await.updated_at, times[50]);
}

/// An append that one handle acknowledged is visible to all handles.
pub async fn an_acknowledged_append_is_seen_by_every_handle(harness: &impl StoreHarness) {
    let one = harness.open().await;
    let other = harness.open().await;
    let mut writer = Writer::create(&one, "s").await;
    for number in 0..20 {
        writer.add(&format!("a{number}")).await;
        let head = head_of(&other, &writer.session).await;
        assert_eq!(head.position, writer.position);
        assert_eq!(
            log(&other, &writer.session)
                .await
                .last()
                .map(helix_agents_core::store::StoredAppend::position),
            Some(writer.position.clone())
        );
    }
}

/// After all handles are dropped, a new handle reads the same head and the same log. The log can be
/// continued.
pub async fn everything_is_there_after_reopening(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    for number in 0..5 {
        writer.add(&format!("a{number}")).await;
    }
    let (head, log_before, position) = (writer.head().await, writer.log().await, writer.position);
    drop((store, writer.store));

    let store = harness.open().await;
    assert_eq!(head_of(&store, &id("s")).await, head);
    assert_eq!(log(&store, &id("s")).await, log_before);
    let mut writer = Writer { store, session: id("s"), position };
    writer.add("after").await;
    assert_eq!(writer.log().await.len(), 7);
}
