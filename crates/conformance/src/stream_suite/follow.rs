//! Scenarios for readers that follow a stream from past to new chunks.

use futures_util::{FutureExt as _, StreamExt as _};

use helix_agents_core::stream::StreamInfo;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_test::{Gate, within};

use super::StreamHarness;
use super::support::{id, next, numbers, take, take_to, text, texts, write};
use crate::ids::batch_id;

/// A reader of a stream that was never written to waits, and then gets the first chunks. Reading
/// does not create the stream.
pub async fn a_stream_that_was_never_written_to_is_empty_and_then_follows(
    harness: &impl StreamHarness,
) {
    let streams = harness.open().await;
    let session = id("s");
    assert_eq!(streams.info(&session).await.unwrap(), StreamInfo::default());
    let mut from_zero = streams.read(&session, 0).await.unwrap();
    let mut from_one = streams.read(&session, 1).await.unwrap();
    assert!(from_one.next().now_or_never().is_none());
    assert_eq!(streams.info(&session).await.unwrap(), StreamInfo::default());
    write(&streams, &session, None, &["a", "b"]).await;
    for reader in [&mut from_zero, &mut from_one] {
        assert_eq!(numbers(&take(reader, 2).await), [1, 2]);
    }
}

/// A read starts at the given number, even in the middle of a batch. A read that starts after the
/// last chunk waits for the next one.
pub async fn reading_starts_at_the_given_number(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    write(&streams, &session, None, &["1", "2", "3", "4"]).await;
    write(&streams, &session, None, &["5", "6"]).await;
    let mut readers = Vec::new();
    for from in 0..=7_u64 {
        readers.push((from, streams.read(&session, from).await.unwrap()));
    }
    write(&streams, &session, None, &["7"]).await;
    for (from, mut reader) in readers {
        let expected: Vec<u64> = (from.max(1)..=7).collect();
        assert_eq!(numbers(&take_to(&mut reader, 7).await), expected, "from {from}");
    }
}

/// A reader that starts at any time during concurrent writes gets every chunk once and in order.
pub async fn reading_catches_up_and_then_follows_without_gap_or_duplicate(
    harness: &impl StreamHarness,
) {
    const WRITERS: u64 = 4;
    const BATCHES: u64 = 30;
    let session = id("s");
    let mut writing = Vec::new();
    let gate = Gate::new();
    for _ in 0..WRITERS {
        let (streams, session, gate) = (harness.open().await, session.clone(), gate.clone());
        writing.push(tokio::spawn(async move {
            gate.pass().await;
            for batch in 0..BATCHES {
                let chunks = vec![text(&session, "x"); 1 + usize::try_from(batch % 2).unwrap()];
                streams.append_chunks(batch_id(), &session, None, chunks).await.unwrap();
            }
        }));
    }
    gate.open();
    let last = WRITERS * BATCHES * 3 / 2;
    let mut reading = Vec::new();
    for number in 0..8_u64 {
        let streams = harness.open().await;
        let session = session.clone();
        reading.push(tokio::spawn(async move {
            // Starts at different times: when this much has been written.
            while streams.info(&session).await.unwrap().last_seq < number * last / 10 {
                tokio::task::yield_now().await;
            }
            let mut reader = streams.read(&session, number + 1).await.unwrap();
            numbers(&take_to(&mut reader, last).await)
        }));
    }
    for task in writing {
        within(task).await.unwrap();
    }
    for (number, task) in (1..).zip(reading) {
        let expected: Vec<u64> = (number..=last).collect();
        assert_eq!(within(task).await.unwrap(), expected);
    }
}

/// Several readers of one stream get the same chunks. Reading does not consume them.
pub async fn several_readers_see_the_same(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    write(&streams, &session, None, &["a", "b"]).await;
    let mut one = streams.read(&session, 1).await.unwrap();
    let mut two = streams.read(&session, 1).await.unwrap();
    let before = take(&mut one, 2).await;
    write(&streams, &session, None, &["c"]).await;
    let mut three = streams.read(&session, 1).await.unwrap();
    let after = take(&mut one, 1).await;
    let all = [before, after].concat();
    assert_eq!(take(&mut two, 3).await, all);
    assert_eq!(take(&mut three, 3).await, all);
}

/// A waiting reader gets each chunk that its own or another handle writes.
pub async fn a_reader_follows_what_another_handle_writes(harness: &impl StreamHarness) {
    let (here, there) = (harness.open().await, harness.open().await);
    let session = id("s");
    let mut reader = here.read(&session, 1).await.unwrap();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let reading =
        tokio::spawn(async move { while sender.send(next(&mut reader).await).is_ok() {} });
    for number in 1..=20 {
        let delta = number.to_string();
        let writer = if number % 2 == 0 { &here } else { &there };
        write(writer, &session, None, &[&delta]).await;
        let chunk = within(seen.recv()).await.unwrap();
        assert_eq!((chunk.seq, texts(&[chunk])), (number, vec![&*delta]));
    }
    reading.abort();
}

/// A reader that is not polled does not block writers. The chunks that it has not read yet are kept
/// for it.
pub async fn a_slow_reader_slows_no_writer_and_loses_nothing(harness: &impl StreamHarness) {
    const BATCHES: usize = 200;
    let streams = harness.open().await;
    let session = id("s");
    let mut reader = streams.read(&session, 1).await.unwrap();
    write(&streams, &session, None, &["x"]).await;
    let first = next(&mut reader).await;
    // The reader is not polled.
    for _ in 0..BATCHES {
        within(write(&streams, &session, None, &["x"; 50])).await;
    }
    let rest = take_to(&mut reader, 1 + 50 * BATCHES as u64).await;
    assert_eq!(first.seq, 1);
    assert_eq!(numbers(&rest), (2..=1 + 50 * BATCHES as u64).collect::<Vec<_>>());
}

/// A hundred readers that wait and are not polled do not block a write. Each of them gets the chunk
/// when it is polled again.
pub async fn readers_that_are_not_polled_block_no_others(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let mut readers = Vec::new();
    for _ in 0..100 {
        let mut reader = streams.read(&session, 1).await.unwrap();
        assert!(reader.next().now_or_never().is_none());
        readers.push(reader);
    }
    within(write(&streams, &session, None, &["a"])).await;
    for mut reader in readers {
        assert_eq!(numbers(&take(&mut reader, 1).await), [1]);
    }
}

/// Dropping a reader, even while it waits, affects neither other readers nor later writes.
pub async fn dropping_a_reader_affects_no_other_reader(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let mut stays = streams.read(&session, 1).await.unwrap();
    let mut goes = streams.read(&session, 1).await.unwrap();
    assert!(goes.next().now_or_never().is_none());
    drop(goes);
    write(&streams, &session, None, &["a"]).await;
    assert_eq!(numbers(&take(&mut stays, 1).await), [1]);
    drop(stays);
    assert_eq!(write(&streams, &session, None, &["b"]).await, 2);
    let mut reader = streams.read(&session, 1).await.unwrap();
    assert_eq!(numbers(&take(&mut reader, 2).await), [1, 2]);
}
