//! Scenarios for watermarks, which align a stream with the log.

use expect_test::expect;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{Boundary, OpenAttempt, SessionWatermark, StreamInfo, Watermark};

use crate::ids::batch_id;

use super::StreamHarness;
use super::support::{
    begin, check, chunk, closing, id, mark, model, numbers, origin, refused, replay, take, text,
    texts, tool, write,
};

/// A watermark announces its settled attempts, then its discarded attempts, and then writes its boundaries. The
/// announcement has the origin of the watermark.
pub async fn a_watermark_announces_attempts_and_then_writes_its_boundaries(
    harness: &impl StreamHarness,
) {
    let streams = harness.open().await;
    let session = id("s");
    let mut reader = streams.read(&session, 1).await.unwrap();
    let one = begin(&streams, &session, &tool("1.0")).await;
    let two = begin(&streams, &session, &tool("1.1")).await;
    let three = begin(&streams, &session, &tool("1.2")).await;
    for (attempt, name) in [(one, "a"), (two, "b"), (three, "c")] {
        write(&streams, &session, Some(attempt), &[name]).await;
    }
    let done = Watermark {
        settled: vec![one, three],
        discarded: vec![two],
        boundaries: vec![closing(&session, 7)],
        ..mark(&session, 7)
    };
    streams.mark(batch_id(), &session, done).await.unwrap();
    let chunks = replay(&streams, &session, 1).await;
    check(
        &chunks,
        expect![[r#"
            1 1 text a
            3 3 text c
            4 - committed 1+3 at 7
            5 - discarded 2
            6 - checkpoint 7
        "#]],
    );
    let announcement = &chunks[2].chunk;
    let expected = chunk(&session, announcement.kind.clone());
    assert_eq!(**announcement, expected, "the announcement has the origin of the watermark");
    assert_eq!(expected.run, origin(&session).run);
    assert_eq!(
        numbers(&take(&mut reader, 5).await).last(),
        Some(&6),
        "a reader follows watermarks too"
    );
}

/// Chunks of an attempt are refused after a watermark of any handle has settled the attempt, because the log would not
/// contain them.
pub async fn chunks_of_a_settled_attempt_are_refused(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    let settle = Watermark { settled: vec![one], ..mark(&session, 3) };
    other.mark(batch_id(), &session, settle).await.unwrap();
    refused(&streams, &session, one).await;
}

/// Chunks of an attempt are refused after a watermark has discarded the attempt, even if another handle wrote the
/// watermark.
pub async fn chunks_of_an_attempt_that_a_mark_discarded_are_refused(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    let discard = Watermark { discarded: vec![one], ..mark(&session, 3) };
    other.mark(batch_id(), &session, discard).await.unwrap();
    refused(&streams, &session, one).await;
}

/// Neither a later watermark nor a new attempt discards the chunks of a settled attempt. The chunks of a discarded
/// attempt do not return if a later watermark settles it.
pub async fn what_was_settled_is_never_discarded(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    write(&streams, &session, Some(one), &["a"]).await;
    let two = begin(&streams, &session, &tool("1.0")).await;
    write(&streams, &session, Some(two), &["b"]).await;
    let first = Watermark { settled: vec![one], discarded: vec![two], ..mark(&session, 3) };
    streams.mark(batch_id(), &session, first).await.unwrap();
    let contrary = Watermark { settled: vec![two], discarded: vec![one], ..mark(&session, 4) };
    streams.mark(batch_id(), &session, contrary).await.unwrap();
    begin(&streams, &session, &model(1)).await;
    write(&streams, &session, None, &["end"]).await;
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            1 1 text a
            3 - committed 1 at 3
            4 - discarded 2
            5 - text end
        "#]],
    );
}

/// A watermark that is written twice announces its attempts and writes its boundaries once. A new owner can therefore
/// repair the stream without knowing the last writes of the old owner.
pub async fn a_repeated_watermark_announces_nothing_twice(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    let two = begin(&streams, &session, &tool("1.0")).await;
    write(&streams, &session, Some(one), &["a"]).await;
    let done = Watermark {
        settled: vec![one],
        discarded: vec![two],
        boundaries: vec![closing(&session, 3)],
        ..mark(&session, 3)
    };
    streams.mark(batch_id(), &session, done.clone()).await.unwrap();
    streams.mark(batch_id(), &session, done).await.unwrap();
    write(&streams, &session, None, &["end"]).await;
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            1 1 text a
            2 - committed 1 at 3
            3 - discarded 2
            4 - checkpoint 3
            5 - text end
        "#]],
    );
}

/// A watermark with a lower version than an earlier one does not lower the version of the stream. It settles its
/// attempts, but its boundaries are not written.
pub async fn marks_never_go_back(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    write(&streams, &session, Some(one), &["a"]).await;
    streams.mark(batch_id(), &session, mark(&session, 9)).await.unwrap();
    let late = Watermark {
        settled: vec![one],
        boundaries: vec![closing(&session, 5)],
        ..mark(&session, 5)
    };
    streams.mark(batch_id(), &session, late).await.unwrap();
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.watermark_version(&session, Timestamp(0)), info.open), (9, Vec::new()));
    check(
        &replay(&streams, &session, 1).await,
        expect![[r#"
            1 1 text a
            2 - committed 1 at 5
        "#]],
    );
    let next = Watermark { boundaries: vec![closing(&session, 10)], ..mark(&session, 10) };
    streams.mark(batch_id(), &session, next).await.unwrap();
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.watermark_version(&session, Timestamp(0)), info.last_seq), (10, 3));
}

/// A watermark writes only the boundaries after the version of the session's previous watermark, even if another handle
/// wrote that one. The boundaries of one event stay together. The same holds for a child session.
pub async fn boundaries_of_an_earlier_watermark_are_skipped(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let (root, child) = (id("s"), id("s-sub-1.0"));
    for session in [&root, &child] {
        let said = |version, delta| Boundary { version, chunk: text(session, delta).into() };
        let one = Watermark {
            boundaries: vec![closing(session, 2), said(4, "ends"), closing(session, 4)],
            ..mark(session, 5)
        };
        let all = [said(6, "begins"), closing(session, 6), closing(session, 8)];
        let boundaries = one.boundaries.iter().cloned().chain(all).collect();
        let two = Watermark { boundaries, ..mark(session, 9) };
        streams.mark(batch_id(), &root, one).await.unwrap();
        other.mark(batch_id(), &root, two.clone()).await.unwrap();
        streams.mark(batch_id(), &root, two).await.unwrap();
    }
    check(
        &replay(&streams, &root, 1).await,
        expect![[r#"
            1 - checkpoint 2
            2 - text ends
            3 - checkpoint 4
            4 - text begins
            5 - checkpoint 6
            6 - checkpoint 8
            7 - checkpoint 2
            8 - text ends
            9 - checkpoint 4
            10 - text begins
            11 - checkpoint 6
            12 - checkpoint 8
        "#]],
    );
    let marked = |seq| SessionWatermark { version: 9, seq, fencing_token: 0 };
    let info = other.info(&root).await.unwrap();
    assert_eq!((info.marked[&root], info.marked[&child]), (marked(6), marked(12)));
}

/// `info` returns the chunk numbers, the watermarks and the open attempts of a stream. Every handle returns the same
/// information.
pub async fn info_returns_the_state_of_the_stream(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let one = begin(&streams, &session, &tool("1.0")).await;
    let two = begin(&streams, &session, &model(1)).await;
    let three = begin(&streams, &session, &tool("1.1")).await;
    let mut open = Vec::from([(one, tool("1.0")), (two, model(1)), (three, tool("1.1"))].map(
        |(attempt, effect)| OpenAttempt {
            attempt,
            session: session.clone(),
            effect,
            start_seq: 0,
            fencing_token: 0,
        },
    ));
    let mut expected = StreamInfo { open: open.clone(), ..StreamInfo::default() };
    assert_eq!(other.info(&session).await.unwrap(), expected);

    write(&streams, &session, Some(two), &["a", "b"]).await;
    expected.first_seq = 1;
    expected.last_seq = 2;
    assert_eq!(other.info(&session).await.unwrap(), expected);

    let settle = Watermark { settled: vec![two], ..mark(&session, 6) };
    streams.mark(batch_id(), &session, settle).await.unwrap();
    open.remove(1);
    let expected = StreamInfo {
        first_seq: 1,
        last_seq: 3,
        marked: [(session.clone(), SessionWatermark { version: 6, seq: 3, fencing_token: 0 })]
            .into(),
        open,
    };
    assert_eq!(other.info(&session).await.unwrap(), expected);
    assert_eq!(texts(&replay(&other, &session, 1).await), ["a", "b"]);
}

/// The attempts and watermarks of a child session are in the stream of its root, and are independent of those of the
/// root. A reset removes the watermarks of both.
pub async fn sessions_that_share_a_stream_do_not_disturb_each_other(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let (root, child) = (id("s"), id("s-sub-1.0"));
    let own = begin(&streams, &root, &model(1)).await;
    let other = streams.begin(batch_id(), &root, &model(1), origin(&child)).await.unwrap();
    write(&streams, &root, Some(own), &["own"]).await;
    write(&streams, &root, Some(other), &["child's"]).await;
    let again = streams.begin(batch_id(), &root, &model(1), origin(&child)).await.unwrap();
    refused(&streams, &root, other).await;
    let boundary = |session: &_, version| Watermark {
        boundaries: vec![closing(session, version)],
        ..mark(session, version)
    };
    for version in [9, 9, 8] {
        streams.mark(batch_id(), &root, boundary(&child, version)).await.unwrap();
    }
    streams
        .mark(batch_id(), &root, Watermark { settled: vec![own], ..boundary(&root, 4) })
        .await
        .unwrap();
    let info = streams.info(&root).await.unwrap();
    let marked = |version, seq| SessionWatermark { version, seq, fencing_token: 0 };
    assert_eq!((info.marked[&root], info.marked[&child]), (marked(4, 6), marked(9, 4)));
    let open = OpenAttempt {
        attempt: again,
        session: child.clone(),
        effect: model(1),
        start_seq: 3,
        fencing_token: 0,
    };
    assert_eq!(info.open, [open]);
    check(
        &replay(&streams, &root, 1).await,
        expect![[r#"
            1 1 text own
            3 - discarded 2
            4 - checkpoint 9
            5 - committed 1 at 4
            6 - checkpoint 4
        "#]],
    );
    streams.reset(&root).await.unwrap();
    assert_eq!(streams.info(&root).await.unwrap().marked.len(), 0);
}
