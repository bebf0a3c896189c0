//! Scenarios for attempts, whose chunks can still be discarded.

use expect_test::expect;

use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{Attempt, ChunkKind, OpenAttempt};
use helix_agents_test::{Gate, within};

use super::StreamHarness;
use super::support::{
    begin, check, chunk, id, model, next, refused, replay, take, take_to, text, texts, tool, write,
};
use crate::ids::batch_id;

/// Attempts of one stream have rising numbers, across effects and handles, even if an attempt replaces an earlier one.
pub async fn attempts_have_rising_numbers(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let mut numbers = Vec::new();
    for turn in 0..5 {
        numbers.push(begin(&streams, &session, &model(turn)).await);
        numbers.push(begin(&other, &session, &tool("1.0")).await);
    }
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

/// Starting a new attempt at an effect discards the earlier attempt. The announcement precedes all chunks of the new
/// attempt.
pub async fn beginning_again_discards_the_earlier_attempt_and_announces_it(
    harness: &impl StreamHarness,
) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    assert_eq!(one, Attempt(1));
    write(&streams, &session, Some(one), &["a", "b"]).await;
    let two = begin(&streams, &session, &model(1)).await;
    write(&streams, &session, Some(two), &["c"]).await;
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            3 - discarded 1
            4 2 text c
        "#]],
    );
    let open = OpenAttempt {
        attempt: two,
        session: session.clone(),
        effect: model(1),
        start_seq: 3,
        fencing_token: 0,
    };
    assert_eq!(streams.info(&session).await.unwrap().open, [open]);
}

/// Attempts at different effects do not discard each other, because the tools of one step run concurrently.
pub async fn attempts_at_different_effects_are_open_side_by_side(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &tool("1.0")).await;
    let two = begin(&streams, &session, &tool("1.1")).await;
    let three = begin(&streams, &session, &model(1)).await;
    let four = begin(&streams, &session, &model(2)).await;
    for (attempt, name) in [(one, "a"), (two, "b"), (four, "c"), (three, "d"), (one, "e")] {
        write(&streams, &session, Some(attempt), &[name]).await;
    }
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            1 1 text a
            2 2 text b
            3 4 text c
            4 3 text d
            5 1 text e
        "#]],
    );
    begin(&streams, &session, &tool("1.1")).await;
    let open: Vec<_> =
        streams.info(&session).await.unwrap().open.into_iter().map(|open| open.attempt).collect();
    assert_eq!(open, [one, three, four, Attempt(5)]);
}

/// Chunks of an attempt are refused after another handle has started a new attempt at the same effect, so a superseded
/// owner cannot write into the stream of its successor.
pub async fn chunks_of_a_replaced_attempt_are_refused(harness: &impl StreamHarness) {
    let (old, new) = (harness.open().await, harness.open().await);
    let session = id("s");
    let one = begin(&old, &session, &model(1)).await;
    write(&old, &session, Some(one), &["a"]).await;
    let two = begin(&new, &session, &model(1)).await;
    refused(&old, &session, one).await;
    write(&new, &session, Some(two), &["b"]).await;
    refused(&old, &session, one).await;
    assert_eq!(texts(&replay(&old, &session, 1).await), ["b"]);
}

/// Chunks of an attempt that was never started are refused, because no announcement could discard them later.
pub async fn chunks_of_an_unknown_attempt_are_refused(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    refused(&streams, &session, Attempt(1)).await;
    let one = begin(&streams, &session, &model(1)).await;
    refused(&streams, &session, Attempt(one.0 + 1)).await;
    refused(&streams, &session, Attempt(0)).await;
    refused(&streams, &session, Attempt(u64::MAX)).await;
}

/// A replay omits the chunks of discarded attempts. The other chunks keep their numbers, so cursors stay valid. This
/// also holds for a reader that was opened before the discard.
pub async fn a_replay_omits_discarded_chunks_and_keeps_the_numbers(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    let other = begin(&streams, &session, &tool("1.0")).await;
    write(&streams, &session, Some(one), &["a", "b"]).await;
    write(&streams, &session, Some(other), &["kept"]).await;
    write(&streams, &session, Some(one), &["c"]).await;
    let mut early = streams.read(&session, 1).await.unwrap();
    let two = begin(&streams, &session, &model(1)).await;
    write(&streams, &session, Some(two), &["d"]).await;
    let seen_early = take(&mut early, 3).await;
    check(
        &seen_early,
        expect![[r#"
        3 2 text kept
        5 - discarded 1
        6 3 text d
    "#]],
    );
    assert_eq!(replay(&streams, &session, 1).await, seen_early);
    // A read from inside the discarded chunks.
    check(
        &replay(&streams, &session, 4).await,
        expect![[r#"
            5 - discarded 1
            6 3 text d
        "#]],
    );
}

/// A reader that has read chunks of an attempt gets the announcement when the attempt is discarded. After the
/// announcement it gets no more chunks of the attempt.
pub async fn a_reader_that_saw_some_gets_the_announcement(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    write(&streams, &session, Some(one), &["a", "b"]).await;
    let mut reader = streams.read(&session, 1).await.unwrap();
    let seen = next(&mut reader).await;
    assert_eq!((seen.seq, seen.attempt), (1, Some(one)));
    begin(&other, &session, &model(1)).await;
    write(&other, &session, None, &["end"]).await;

    // The second chunk may still arrive, depending on how far the reader has read ahead.
    let rest = take_to(&mut reader, 4).await;
    let announced = rest
        .iter()
        .position(|stored| stored.chunk.kind == ChunkKind::StepDiscarded { attempts: vec![one] })
        .unwrap();
    assert!(
        rest[announced..].iter().all(|stored| stored.attempt.is_none()),
        "after the announcement: {rest:?}"
    );
}

/// Boundaries that are written while an attempt is open are kept when the attempt is discarded, because they show facts
/// from the log.
pub async fn boundaries_survive_every_discard(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let boundary = chunk(&session, ChunkKind::Checkpoint { version: 4 });
    let one = begin(&streams, &session, &model(1)).await;
    write(&streams, &session, Some(one), &["a"]).await;
    streams
        .append_chunks(batch_id(), &session, None, vec![boundary.clone(), boundary])
        .await
        .unwrap();
    write(&streams, &session, Some(one), &["b"]).await;
    begin(&streams, &session, &model(1)).await;
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            2 - checkpoint 4
            3 - checkpoint 4
            5 - discarded 1
        "#]],
    );
}

/// If several owners start an attempt at the same effect concurrently, the last attempt stays open and only its chunks
/// are kept. All earlier attempts are announced as discarded.
pub async fn racing_beginners_leave_one_open_attempt(harness: &impl StreamHarness) {
    const BEGINNERS: usize = 8;
    let session = id("s");
    let gate = Gate::new();
    let mut tasks = Vec::new();
    for _ in 0..BEGINNERS {
        let (streams, session, gate) = (harness.open().await, session.clone(), gate.clone());
        tasks.push(tokio::spawn(async move {
            gate.pass().await;
            let attempt = begin(&streams, &session, &model(1)).await;
            let chunks = vec![text(&session, &attempt.0.to_string())];
            let written = streams.append_chunks(batch_id(), &session, Some(attempt), chunks).await;
            (attempt, written.is_ok())
        }));
    }
    gate.reached_by(BEGINNERS).await;
    gate.open();
    let mut attempts = Vec::new();
    for task in tasks {
        attempts.push(within(task).await.unwrap());
    }
    attempts.sort();
    let numbers: Vec<u64> = attempts.iter().map(|(attempt, _)| attempt.0).collect();
    assert_eq!(numbers, (1..=BEGINNERS as u64).collect::<Vec<_>>());
    assert!(attempts[BEGINNERS - 1].1, "the last one was refused");

    let streams = harness.open().await;
    let open = streams.info(&session).await.unwrap().open;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].attempt.0, BEGINNERS as u64);
    let chunks = replay(&streams, &session, 1).await;
    assert_eq!(texts(&chunks), [BEGINNERS.to_string()]);
    let announced: Vec<u64> = chunks
        .iter()
        .filter_map(|stored| match &stored.chunk.kind {
            ChunkKind::StepDiscarded { attempts } => Some(attempts[0].0),
            _ => None,
        })
        .collect();
    assert_eq!(announced, (1..BEGINNERS as u64).collect::<Vec<_>>());
}
