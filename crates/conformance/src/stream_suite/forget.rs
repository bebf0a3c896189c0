//! Scenarios for forgetting the streams of deleted sessions.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{ChunkKind, StreamInfo};

use crate::ids::batch_id;

use super::StreamHarness;
use super::support::{
    begin, closing, forget, id, mark, model, next, numbers, refused, replay, take, texts, write,
};

/// A deleted stream has no chunks, attempts or watermarks, and its numbers start at 1 again. Other
/// streams are not affected.
pub async fn a_deleted_stream_equals_a_new_one(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let (session, other) = (id("s"), id("other"));
    forget(&streams, &session).await;
    write(&streams, &other, None, &["x"]).await;
    let attempt = begin(&streams, &session, &model(1)).await;
    write(&streams, &session, Some(attempt), &["a", "b"]).await;
    streams.mark(batch_id(), &session, mark(&session, 7)).await.unwrap();
    streams.mark(batch_id(), &session, mark(&id("child"), 7)).await.unwrap();
    forget(&streams, &session).await;
    for streams in [&streams, &harness.open().await] {
        assert_eq!(streams.info(&session).await.unwrap(), StreamInfo::default());
        assert_eq!(texts(&replay(streams, &other, 1).await), ["x"]);
    }
    refused(&streams, &session, attempt).await;
    assert_eq!(write(&streams, &session, None, &["c"]).await, 1);
    assert_eq!(texts(&replay(&streams, &session, 1).await), ["c"]);
    forget(&streams, &session).await;
    forget(&streams, &session).await;
}

/// `forget` does not delete a stream that has changed since its info was read. Chunks, attempts and
/// watermarks count as changes, and so does a new stream after a deletion.
pub async fn a_stream_that_has_changed_is_not_forgotten(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let nothing = StreamInfo::default();
    let mut seen = vec![nothing.clone()];
    write(&streams, &session, None, &["a"]).await;
    seen.push(other.info(&session).await.unwrap());
    begin(&streams, &session, &model(1)).await;
    seen.push(other.info(&session).await.unwrap());
    streams.mark(batch_id(), &session, mark(&session, 7)).await.unwrap();
    seen.push(other.info(&session).await.unwrap());
    streams.mark(batch_id(), &session, mark(&id("child"), 7)).await.unwrap();
    for seen in &seen {
        assert!(!other.forget(&session, seen).await.unwrap(), "{seen:?}");
    }
    let last = streams.info(&session).await.unwrap();
    assert_eq!(texts(&replay(&streams, &session, 1).await), ["a"]);

    assert!(other.forget(&session, &last).await.unwrap());
    for seen in [&last, &nothing] {
        assert!(streams.forget(&session, seen).await.unwrap(), "it is gone already");
    }
    write(&streams, &session, None, &["b"]).await;
    assert!(!other.forget(&session, &last).await.unwrap());
    assert_eq!(texts(&replay(&other, &session, 1).await), ["b"]);
}

/// After a stream was deleted, a watermark with a lower version than the old one writes its
/// boundaries, even through a handle that has cached the old watermark.
pub async fn marks_of_a_forgotten_stream_hide_no_boundaries(harness: &impl StreamHarness) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let marked = |version| {
        let mut mark = mark(&session, version);
        mark.boundaries = vec![closing(&session, version)];
        mark
    };
    streams.mark(batch_id(), &session, marked(9)).await.unwrap();
    forget(&other, &session).await;
    // The handle has the old watermark cached.
    streams.mark(batch_id(), &session, marked(3)).await.unwrap();
    let info = other.info(&session).await.unwrap();
    assert_eq!((info.last_seq, info.watermark_version(&session, Timestamp(0))), (1, 3));
    let shown = replay(&other, &session, 1).await;
    assert_eq!(shown.first().unwrap().chunk.kind, ChunkKind::Checkpoint { version: 3 });
}

/// A waiting reader that has read chunks gets one resync when the stream is deleted, and then the
/// chunks of the new stream. A reader that has read nothing gets the new chunks without a resync.
pub async fn a_reader_of_a_forgotten_stream_gets_one_resync_and_then_the_next(
    harness: &impl StreamHarness,
) {
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    let mut waits = streams.read(&session, 1).await.unwrap();
    let mut saw_nothing = streams.read(&session, 1).await.unwrap();
    write(&streams, &session, None, &["a", "b"]).await;
    assert_eq!(texts(&take(&mut waits, 2).await), ["a", "b"]);
    let forgetting = async { forget(&other, &session).await };
    let (told, ()) = tokio::join!(next(&mut waits), forgetting);
    assert_eq!((told.seq, &told.chunk.kind), (0, &ChunkKind::StreamResync));
    write(&other, &session, None, &["c", "d", "e"]).await;
    for reader in [&mut waits, &mut saw_nothing] {
        let chunks = take(reader, 3).await;
        assert_eq!((numbers(&chunks), texts(&chunks)), (vec![1, 2, 3], vec!["c", "d", "e"]));
    }
}

/// A reader was not polled while its stream was deleted and written again. It gets one resync and
/// then the new chunks, even if the new stream is longer than the old one.
pub async fn a_late_reader_notices_that_a_stream_was_replaced(harness: &impl StreamHarness) {
    if !harness.keeps_readers() {
        return;
    }
    let (streams, other) = (harness.open().await, harness.open().await);
    let session = id("s");
    write(&streams, &session, None, &["a", "b"]).await;
    let mut reader = streams.read(&session, 1).await.unwrap();
    assert_eq!(texts(&take(&mut reader, 2).await), ["a", "b"]);
    for deltas in [["c", "d", "e"], ["f", "g", "h"]] {
        forget(&other, &session).await;
        write(&other, &session, None, &deltas).await;
        let told = next(&mut reader).await;
        assert_eq!((told.seq, &told.chunk.kind), (0, &ChunkKind::StreamResync));
        let chunks = take(&mut reader, 3).await;
        assert_eq!((numbers(&chunks), texts(&chunks)), (vec![1, 2, 3], deltas.to_vec()));
    }
}
