//! Scenarios for batches: one write is applied in order and atomically.

use expect_test::expect;
use futures_util::{FutureExt as _, StreamExt as _, stream};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{
    Attempt, AttemptRef, Batch, Effect, OpenAttempt, Receipts, StreamOp, Watermark, Writer,
};
use helix_agents_test::within;

use crate::ids::batch_id;

use super::StreamHarness;
use super::support::{begin, check, id, mark, model, origin, replay, text, texts, tool, write};

pub(super) fn start_op(session: &SessionId, effect: Effect) -> StreamOp {
    StreamOp::Begin { effect, origin: origin(session).into() }
}

pub(super) fn write_op(
    session: &SessionId,
    attempt: Option<AttemptRef>,
    texts: &[&str],
) -> StreamOp {
    let chunks = texts.iter().map(|delta| text(session, delta).into()).collect();
    StreamOp::Chunks { attempt, chunks }
}

pub(super) const STARTED: fn(usize) -> Option<AttemptRef> =
    |index| Some(AttemptRef::Started(index));
pub(super) const EXISTING: fn(Attempt) -> Option<AttemptRef> =
    |attempt| Some(AttemptRef::Existing(attempt));

/// A batch applies its operations in order: a watermark, new attempts, and chunks with and without
/// an attempt. The receipt contains the last chunk number and the numbers of the new attempts.
pub async fn a_batch_is_written_in_its_order(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    let settling = Watermark { settled: vec![one], ..mark(&session, 3) };
    let batch = vec![
        write_op(&session, EXISTING(one), &["a"]),
        StreamOp::Watermark(Box::new(settling)),
        start_op(&session, tool("1.0")),
        start_op(&session, tool("1.1")),
        write_op(&session, STARTED(1), &["b"]),
        write_op(&session, None, &["c"]),
        write_op(&session, STARTED(0), &["d", "e"]),
        write_op(&session, STARTED(1), &["f"]),
    ];
    let written = streams
        .write(&session, Batch::new(batch_id(), Writer::without_run(&session), batch))
        .await
        .unwrap();
    assert_eq!((written.last_seq, &*written.started), (7, &[Attempt(2), Attempt(3)][..]));
    assert_eq!(written.refused, []);
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            1 1 text a
            2 - committed 1 at 3
            3 3 text b
            4 - text c
            5 2 text d
            6 2 text e
            7 3 text f
        "#]],
    );
    let info = streams.info(&session).await.unwrap();
    let open = |attempt, call, start_seq| OpenAttempt {
        attempt: Attempt(attempt),
        session: session.clone(),
        effect: tool(call),
        start_seq,
        fencing_token: 0,
    };
    assert_eq!(
        (info.watermark_version(&session, Timestamp(0)), &*info.open),
        (3, &[open(2, "1.0", 2), open(3, "1.1", 2)][..])
    );
}

/// A repeated batch returns the number of the first write and is written once, even after writes to
/// many other streams. This also holds if the first write was dropped.
pub async fn a_batch_is_known_again_whatever_other_streams_were_written(
    harness: &impl StreamHarness,
) {
    const OTHERS: usize = 1100;
    let streams = harness.open().await;
    let (answered, dropped) = (id("answered"), id("dropped"));
    let batch = |session: &SessionId, delta: &str| {
        Batch::new(batch_id(), Writer::without_run(session), [write_op(session, None, &[delta])])
    };
    let (one, two) = (batch(&answered, "a"), batch(&dropped, "b"));
    let written = streams.write(&answered, one.clone()).await.unwrap();
    assert_eq!(written.last_seq, 1);
    let _left = streams.write(&dropped, two.clone()).now_or_never();
    let others = stream::iter(0..OTHERS).map(async |number| {
        let other = id(&format!("other {number}"));
        streams.write(&other, batch(&other, "x")).await.unwrap();
    });
    within(others.buffer_unordered(32).collect::<()>()).await;
    for (session, batch) in [(&answered, one), (&dropped, two)] {
        assert_eq!(streams.write(session, batch).await.unwrap().last_seq, 1, "{session}");
        assert_eq!(streams.info(session).await.unwrap().last_seq, 1, "{session}");
    }
}

/// A batch whose first write is dropped while other writes are in progress is written once when it
/// is repeated.
pub async fn a_batch_whose_writer_was_dropped_is_written_once(harness: &impl StreamHarness) {
    const BATCHES: u64 = 40;
    let streams = harness.open().await;
    let session = id("s");
    for number in 1..=BATCHES {
        let batch = Batch::new(
            batch_id(),
            Writer::without_run(&session),
            [write_op(&session, None, &[&number.to_string()])],
        );
        // Other writes are in progress.
        let other = id(&format!("other {number}"));
        let beside = write(&streams, &other, None, &["x"]);
        tokio::select! {
            biased;
            _ = streams.write(&session, batch.clone()) => {}
            _ = beside => {}
        }
        assert_eq!(within(streams.write(&session, batch)).await.unwrap().last_seq, number);
    }
    let expected: Vec<_> = (1..=BATCHES).map(|number| number.to_string()).collect();
    assert_eq!(texts(&replay(&streams, &session, 1).await), expected);
}

/// A stream recognises its last `Receipts::KEPT` batches. A repeated batch returns the same receipt
/// and writes nothing.
pub async fn the_last_batches_of_a_stream_are_known_again(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let mut batches = Vec::new();
    for number in 1..=Receipts::KEPT as u64 {
        let batch = Batch::new(
            batch_id(),
            Writer::without_run(&session),
            [write_op(&session, None, &["a", "b"])],
        );
        let written = streams.write(&session, batch.clone()).await.unwrap();
        assert_eq!(written.last_seq, 2 * number);
        batches.push((batch, written));
    }
    let last_seq = 2 * Receipts::KEPT as u64;
    for (batch, written) in batches {
        assert_eq!(streams.write(&session, batch).await.unwrap(), written);
        assert_eq!(streams.info(&session).await.unwrap().last_seq, last_seq);
    }
}

/// Chunks of discarded or unknown attempts are dropped, and the receipt lists these attempts as
/// refused. The other operations of the batch are applied.
pub async fn refused_chunks_do_not_hold_up_the_rest_of_a_batch(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let old = begin(&streams, &session, &model(1)).await;
    let new = begin(&streams, &session, &model(1)).await;
    let batch = vec![
        write_op(&session, EXISTING(old), &["late"]),
        write_op(&session, EXISTING(new), &["in time"]),
        write_op(&session, EXISTING(Attempt(9)), &["never started"]),
        write_op(&session, None, &["boundary"]),
    ];
    let written = streams
        .write(&session, Batch::new(batch_id(), Writer::without_run(&session), batch))
        .await
        .unwrap();
    assert_eq!(written.refused, [old, Attempt(9)]);
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            1 - discarded 1
            2 2 text in time
            3 - text boundary
        "#]],
    );
}

/// If a batch starts two attempts at one effect, the second attempt discards the first. Later
/// chunks of the first attempt in the same batch are refused.
pub async fn a_batch_may_discard_its_own_attempt(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let batch = vec![
        start_op(&session, model(1)),
        write_op(&session, STARTED(0), &["a"]),
        start_op(&session, model(1)),
        write_op(&session, STARTED(0), &["late"]),
        write_op(&session, STARTED(1), &["b"]),
    ];
    let written = streams
        .write(&session, Batch::new(batch_id(), Writer::without_run(&session), batch))
        .await
        .unwrap();
    assert_eq!((written.last_seq, &*written.refused), (3, &[Attempt(1)][..]));
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            2 - discarded 1
            3 2 text b
        "#]],
    );
}

/// A batch that writes chunks for an attempt before it starts the attempt fails with
/// `input_invalid`. The batch is atomic: the operations before the mistake are not applied either.
pub async fn a_batch_with_an_unknown_attempt_writes_nothing(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let before = streams.info(&session).await.unwrap();
    let batch = vec![
        write_op(&session, None, &["a"]),
        write_op(&session, STARTED(0), &["b"]),
        start_op(&session, model(1)),
    ];
    let error = streams
        .write(&session, Batch::new(batch_id(), Writer::without_run(&session), batch))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert_eq!(streams.info(&session).await.unwrap(), before);
}

/// An empty batch writes no chunks and does not create a stream. Its receipt contains the number of
/// the last chunk.
pub async fn an_empty_batch_writes_nothing(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let written = streams
        .write(&session, Batch::new(batch_id(), Writer::without_run(&session), []))
        .await
        .unwrap();
    assert_eq!((written.last_seq, written.started.len()), (0, 0));
    streams.append_chunks(batch_id(), &session, None, vec![text(&session, "a")]).await.unwrap();
    assert_eq!(
        streams
            .write(&session, Batch::new(batch_id(), Writer::without_run(&session), []))
            .await
            .unwrap()
            .last_seq,
        1
    );
}
