//! Scenarios for takeovers, where a process was stopped while another one took over its session.

use expect_test::expect;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Attempt, Batch, BatchReceipt, SessionWatermark, StreamOp, Watermark, Writer,
};

use crate::ids::batch_id;

use super::StreamHarness;
use super::batch::{EXISTING, STARTED, start_op, write_op};
use super::support::{Streams, check, closing, forget, id, mark, model, replay, text, tool};

fn run_of(session: &SessionId, fencing_token: u64) -> Writer {
    Writer { session: session.clone(), created_at: Timestamp(0), fencing_token }
}

fn watermark_op(mark: Watermark) -> StreamOp {
    StreamOp::Watermark(Box::new(mark))
}

/// Writes a batch of a run.
async fn write(
    streams: &Streams,
    stream: &SessionId,
    writer: &Writer,
    ops: impl IntoIterator<Item = StreamOp>,
) -> BatchReceipt {
    let ops: Vec<_> = ops.into_iter().collect();
    streams.write(stream, Batch::new(batch_id(), writer.clone(), ops)).await.unwrap()
}

/// Starts an attempt at the model call of step 1 and writes a text chunk of it.
async fn try_model(
    streams: &Streams,
    stream: &SessionId,
    writer: &Writer,
    delta: &str,
) -> (Attempt, BatchReceipt) {
    let session = &writer.session;
    let ops = [start_op(session, model(1)), write_op(session, STARTED(0), &[delta])];
    let written = write(streams, stream, writer, ops).await;
    (written.started[0], written)
}

async fn open(streams: &Streams, stream: &SessionId) -> Vec<Attempt> {
    let info = streams.info(stream).await.unwrap();
    info.open.into_iter().map(|open| open.attempt).collect()
}

/// After a later run has taken over the session, no batch of the earlier run changes the stream, even if its handle has
/// cached stale stream state. Each receipt reports that the run is superseded.
pub async fn a_superseded_run_writes_nothing_more(harness: &impl StreamHarness) {
    let (old, new) = (harness.open().await, harness.open().await);
    let session = id("s");
    let (first, second) = (run_of(&session, 3), run_of(&session, 8));
    let (one, _) = try_model(&old, &session, &first, "a").await;
    let taken_over = Watermark { discarded: vec![one], ..mark(&session, 8) };
    write(&new, &session, &second, [watermark_op(taken_over)]).await;
    let (two, _) = try_model(&new, &session, &second, "b").await;
    let before = new.info(&session).await.unwrap();
    assert_eq!(before.marked[&session], SessionWatermark { version: 8, seq: 2, fencing_token: 8 });
    assert_eq!((before.open[0].attempt, before.open[0].fencing_token), (two, 8));
    let late = [
        vec![write_op(&session, EXISTING(one), &["late"])],
        vec![write_op(&session, None, &["late"])],
        vec![start_op(&session, model(1)), write_op(&session, STARTED(0), &["late"])],
        vec![start_op(&session, tool("1.0")), start_op(&session, tool("1.1"))],
        vec![watermark_op(Watermark { settled: vec![two], ..mark(&session, 4) })],
        vec![watermark_op(Watermark {
            discarded: vec![two],
            boundaries: vec![closing(&session, 9)],
            ..mark(&session, 9)
        })],
    ];
    for ops in late {
        let batch = Batch::new(batch_id(), first.clone(), ops);
        for _ in 0..2 {
            let written = old.write(&session, batch.clone()).await.unwrap();
            let nothing =
                BatchReceipt { last_seq: 3, is_superseded: true, ..BatchReceipt::default() };
            assert_eq!(written, nothing, "{batch:?}");
            assert_eq!(new.info(&session).await.unwrap(), before, "{batch:?}");
        }
    }
    write(&new, &session, &second, [write_op(&session, EXISTING(two), &["c"])]).await;
    check(
        &replay(&old, &session, 1).await,
        expect![[r#"
            2 - discarded 1
            3 2 text b
            4 2 text c
        "#]],
    );
}

/// A watermark that a stopped process writes late for a deleted session does not hide boundaries of a new session with
/// the same id.
pub async fn a_watermark_of_a_deleted_session_hides_no_chunks_of_its_successor(
    harness: &impl StreamHarness,
) {
    let (old, new) = (harness.open().await, harness.open().await);
    let session = id("s");
    let deleted = run_of(&session, 105);
    let successor = Writer { created_at: Timestamp(200), ..run_of(&session, 200) };
    let late = Watermark { boundaries: vec![closing(&session, 9)], ..mark(&session, 9) };
    write(&old, &session, &deleted, [watermark_op(late)]).await;
    let info = new.info(&session).await.unwrap();
    let versions = [100, 200].map(|time| info.watermark_version(&session, Timestamp(time)));
    assert_eq!(versions, [9, 0]);
    let first = Watermark { boundaries: vec![closing(&session, 2)], ..mark(&session, 3) };
    write(&new, &session, &successor, [watermark_op(first)]).await;
    let second = Watermark { boundaries: vec![closing(&session, 4)], ..mark(&session, 4) };
    write(&new, &session, &successor, [watermark_op(second)]).await;
    check(
        &replay(&new, &session, 1).await,
        expect![[r#"
            1 - checkpoint 9
            2 - checkpoint 2
            3 - checkpoint 4
        "#]],
    );
    let info = new.info(&session).await.unwrap();
    assert_eq!(info.marked[&session], SessionWatermark { version: 4, seq: 3, fencing_token: 200 });
}

/// A watermark of a later run discards all open attempts of earlier runs of its session that it does not settle,
/// including those that it does not list. Attempts of other sessions stay open.
pub async fn a_watermark_of_a_later_run_discards_unsettled_attempts(harness: &impl StreamHarness) {
    let (old, new) = (harness.open().await, harness.open().await);
    let session = id("s");
    let (first, second) = (run_of(&session, 3), run_of(&session, 8));
    let child = run_of(&id("child"), 2);
    try_model(&old, &session, &child, "of the child").await;
    let (one, _) = try_model(&old, &session, &first, "on record").await;
    let ops = [start_op(&session, tool("1.0")), write_op(&session, STARTED(0), &["late"])];
    write(&old, &session, &first, ops).await;
    let ops = [start_op(&session, tool("1.1")), write_op(&session, STARTED(0), &["named"])];
    let three = write(&old, &session, &first, ops).await.started[0];
    let taken_over = Watermark { settled: vec![one], discarded: vec![three], ..mark(&session, 8) };
    write(&new, &session, &second, [watermark_op(taken_over)]).await;
    assert_eq!(open(&new, &session).await, [Attempt(1)]);
    check(
        &replay(&new, &session, 1).await,
        expect![[r#"
            1 1 text of the child
            2 2 text on record
            5 - committed 2 at 8
            6 - discarded 3+4
        "#]],
    );
    // This also holds for a watermark without new events.
    let third = run_of(&session, 12);
    try_model(&old, &session, &second, "late again").await;
    write(&new, &session, &third, [watermark_op(mark(&session, 0))]).await;
    let info = new.info(&session).await.unwrap();
    assert_eq!(info.marked[&session], SessionWatermark { version: 8, seq: 6, fencing_token: 12 });
    assert_eq!(open(&old, &session).await, [Attempt(1)]);
}

/// A run that starts an attempt supersedes the earlier runs of its session, even if it has not written a watermark.
pub async fn a_run_that_tries_something_supersedes_earlier_ones(harness: &impl StreamHarness) {
    let (old, new) = (harness.open().await, harness.open().await);
    let session = id("s");
    let (first, second) = (run_of(&session, 3), run_of(&session, 8));
    try_model(&old, &session, &first, "a").await;
    let (two, _) = try_model(&new, &session, &second, "b").await;
    let ops = [start_op(&session, model(1)), write_op(&session, STARTED(0), &["late"])];
    assert!(write(&old, &session, &first, ops).await.is_superseded);
    assert_eq!(open(&old, &session).await, [two]);
}

/// Two workers can write for the same run without superseding each other. An engine may have given one work item of a
/// run to two workers.
pub async fn workers_of_one_run_do_not_supersede_each_other(harness: &impl StreamHarness) {
    let (one, two) = (harness.open().await, harness.open().await);
    let session = id("s");
    let run = run_of(&session, 3);
    write(&one, &session, &run, [watermark_op(mark(&session, 3))]).await;
    let (attempt, _) = try_model(&one, &session, &run, "a").await;
    let ops = [start_op(&session, tool("1.0")), watermark_op(mark(&session, 5))];
    assert!(!write(&two, &session, &run, ops).await.is_superseded);
    let written =
        write(&one, &session, &run, [write_op(&session, EXISTING(attempt), &["b"])]).await;
    assert_eq!((written.last_seq, written.is_superseded), (2, false));
    assert_eq!(open(&one, &session).await, [attempt, Attempt(attempt.0 + 1)]);
}

/// A run supersedes only earlier runs of its own session, because the log of each session has its own versions. A run
/// of the root does not supersede a run of a child.
pub async fn runs_supersede_those_of_their_own_session_only(harness: &impl StreamHarness) {
    let (one, two) = (harness.open().await, harness.open().await);
    let (root, child) = (id("s"), id("child"));
    write(&one, &root, &run_of(&root, 20), [watermark_op(mark(&root, 20))]).await;
    let early = run_of(&child, 3);
    write(&two, &root, &early, [watermark_op(mark(&child, 3))]).await;
    let (attempt, written) = try_model(&two, &root, &early, "of the child").await;
    assert!(!written.is_superseded);
    let (own, _) = try_model(&one, &root, &run_of(&root, 20), "own").await;
    write(&one, &root, &run_of(&child, 9), [watermark_op(mark(&child, 9))]).await;
    let ops = [write_op(&child, EXISTING(attempt), &["late"])];
    assert!(write(&two, &root, &early, ops).await.is_superseded);
    let info = two.info(&root).await.unwrap();
    let tokens = [&root, &child].map(|session| info.marked[session].fencing_token);
    assert_eq!((tokens, open(&two, &root).await), ([20, 9], vec![own]));
}

async fn knows_no_earlier_runs(streams: &Streams, other: &Streams, session: &SessionId) {
    let ops = [start_op(session, model(1)), write_op(session, STARTED(0), &["a"])];
    let written = write(other, session, &run_of(session, 2), ops).await;
    assert!(!written.is_superseded);
    assert_eq!(open(streams, session).await, written.started);
    let child = run_of(&id("child"), 2);
    assert!(
        !write(other, session, &child, [watermark_op(mark(&id("child"), 2))]).await.is_superseded
    );
}

async fn taken_over(streams: &Streams, session: &SessionId) {
    for of in [session, &id("child")] {
        write(streams, session, &run_of(of, 8), [watermark_op(mark(of, 8))]).await;
    }
    try_model(streams, session, &run_of(session, 9), "a").await;
}

/// After a reset, a stream accepts writes of a run with a lower fencing token than earlier runs had.
pub async fn a_reset_stream_forgets_earlier_runs(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    taken_over(&streams, &session).await;
    streams.reset(&session).await.unwrap();
    knows_no_earlier_runs(&streams, &other, &session).await;
}

/// After its deletion, a stream accepts writes of a run with a lower fencing token than earlier runs had, because a new
/// session with the same id has a new log.
pub async fn a_deleted_stream_forgets_earlier_runs(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    taken_over(&streams, &session).await;
    forget(&streams, &session).await;
    knows_no_earlier_runs(&streams, &other, &session).await;
}

/// A batch that starts an attempt or writes a watermark for another session than its writer's fails with
/// `input_invalid`. The batch is atomic and changes nothing.
pub async fn a_batch_for_another_session_than_its_writers_writes_nothing(
    harness: &impl StreamHarness,
) {
    let streams = harness.open().await;
    let (session, child) = (id("s"), id("child"));
    let before = streams.info(&session).await.unwrap();
    for op in [start_op(&child, model(1)), watermark_op(mark(&child, 3))] {
        let ops =
            [StreamOp::Chunks { attempt: None, chunks: vec![text(&session, "a").into()] }, op];
        let batch = Batch::new(batch_id(), run_of(&session, 3), ops);
        let error = streams.write(&session, batch).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InputInvalid);
        assert_eq!(streams.info(&session).await.unwrap(), before);
    }
}
