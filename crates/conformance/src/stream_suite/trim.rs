//! Scenarios for trimmed chunks, and how a reader learns of them.

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{ChunkKind, StoredChunk, StreamInfo};

use super::StreamHarness;
use super::support::{
    Streams, begin, id, model, next, numbers, refused, replay, take, take_to, tool, write,
};

const KEPT: u64 = 20;

/// A number above what any backend keeps when it was configured to keep [`KEPT`].
const MAX_CHUNKS: u64 = 10_000;

/// Writes until more chunks are trimmed.
async fn trim(streams: &Streams, session: &SessionId) -> StreamInfo {
    let before = streams.info(session).await.unwrap();
    loop {
        write(streams, session, None, &["x"; 5]).await;
        let info = streams.info(session).await.unwrap();
        assert!(
            info.last_seq + 1 - info.first_seq >= KEPT.min(info.last_seq),
            "{info:?} keeps too little"
        );
        if info.first_seq > before.first_seq.max(1) {
            return info;
        }
        assert!(info.last_seq - before.last_seq < MAX_CHUNKS, "{info:?}: nothing was trimmed");
    }
}

#[track_caller]
fn assert_resync(chunk: &StoredChunk, seq: u64) {
    assert_eq!(
        (chunk.seq, &chunk.chunk.kind, chunk.attempt),
        (seq, &ChunkKind::StreamResync, None)
    );
}

/// A reader that starts before the first kept chunk gets one resync and then all kept chunks. The resync has the number
/// of the last missing chunk, so the next cursor is correct.
pub async fn a_reader_behind_the_trimmed_end_gets_one_resync_and_then_the_rest(
    harness: &impl StreamHarness,
) {
    let streams = harness.open_keeping(KEPT).await;
    let session = id("s");
    let StreamInfo { first_seq, last_seq, .. } = trim(&streams, &session).await;
    for from in [0, 1, first_seq - 1] {
        let chunks = replay(&streams, &session, from).await;
        assert_resync(&chunks[0], first_seq - 1);
        assert_eq!(chunks[0].chunk.session, session);
        assert_eq!(numbers(&chunks), (first_seq - 1..=last_seq).collect::<Vec<_>>());
        assert!(chunks[1..].iter().all(|stored| stored.chunk.kind != ChunkKind::StreamResync));
    }
    let chunks = replay(&streams, &session, first_seq).await;
    assert_eq!(numbers(&chunks), (first_seq..=last_seq).collect::<Vec<_>>(), "all of it is kept");
    assert_ne!(chunks[0].chunk.kind, ChunkKind::StreamResync);
}

/// A reader whose next chunks were trimmed gets one resync instead of them, and then all following chunks. It may first
/// get chunks that it had read ahead.
pub async fn a_reader_that_was_overtaken_by_trimming_gets_one_resync(harness: &impl StreamHarness) {
    let streams = harness.open_keeping(KEPT).await;
    let session = id("s");
    let mut reader = streams.read(&session, 1).await.unwrap();
    write(&streams, &session, None, &["x"; 5]).await;
    assert_eq!(next(&mut reader).await.seq, 1);
    for _ in 0..3 {
        trim(&streams, &session).await;
    }
    let last = streams.info(&session).await.unwrap().last_seq;
    let chunks = take_to(&mut reader, last).await;
    let resync =
        chunks.iter().position(|stored| stored.chunk.kind == ChunkKind::StreamResync).unwrap();
    let (before, after) = chunks.split_at(resync);
    let ahead = before.len() as u64;
    assert_eq!(numbers(before), (2..2 + ahead).collect::<Vec<_>>());
    assert!(after[0].seq >= 2 + ahead);
    assert_eq!(
        numbers(after),
        (after[0].seq..=last).collect::<Vec<_>>(),
        "no gaps after the resync"
    );
    assert!(after[1..].iter().all(|stored| stored.chunk.kind != ChunkKind::StreamResync));
}

/// A reset stream is empty, and its next chunk has the next number, so an old cursor never points to a new chunk.
pub async fn a_reset_stream_continues_its_numbers(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    streams.reset(&session).await.unwrap();
    assert_eq!(streams.info(&session).await.unwrap(), StreamInfo::default());
    write(&streams, &session, None, &["a", "b", "c"]).await;
    begin(&streams, &session, &model(1)).await;
    streams.reset(&session).await.unwrap();
    let info = streams.info(&session).await.unwrap();
    let expected = StreamInfo { last_seq: 3, ..StreamInfo::default() };
    assert_eq!(info, expected, "empty, and the numbers continue");
    assert_eq!(write(&streams, &session, None, &["d"]).await, 4);
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.first_seq, info.last_seq), (4, 4));
    streams.reset(&session).await.unwrap();
    assert_eq!(write(&streams, &session, None, &["e"]).await, 5);
}

/// Chunks of attempts that were started before a reset are refused. A new attempt has a higher number than the old
/// ones.
pub async fn attempts_from_before_a_reset_are_refused(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let one = begin(&streams, &session, &model(1)).await;
    let two = begin(&streams, &session, &tool("1.0")).await;
    streams.reset(&session).await.unwrap();
    refused(&streams, &session, one).await;
    let three = begin(&streams, &session, &model(1)).await;
    assert!(three > two);
    refused(&streams, &session, one).await;
    refused(&streams, &session, two).await;
    assert_eq!(write(&streams, &session, Some(three), &["a"]).await, 1);
}

/// A reader with a cursor from before a reset gets one resync, followed by the chunks that were written since.
pub async fn a_cursor_from_before_a_reset_gets_one_resync(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    write(&streams, &session, None, &["a", "b", "c"]).await;
    streams.reset(&session).await.unwrap();
    let mut readers = Vec::new();
    for from in 0..=3 {
        let mut reader = streams.read(&session, from).await.unwrap();
        assert_resync(&next(&mut reader).await, 3);
        readers.push(reader);
    }
    write(&streams, &session, None, &["d"]).await;
    for mut reader in readers {
        assert_eq!(numbers(&take(&mut reader, 1).await), [4]);
    }
    let chunks = replay(&streams, &session, 2).await;
    assert_resync(&chunks[0], 3);
    assert_eq!(numbers(&chunks), [3, 4]);
}

/// A reader that has read all chunks continues after a reset without a resync. A reader that was behind gets a resync
/// first.
pub async fn a_reader_continues_after_a_reset(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let mut up_to_date = streams.read(&session, 1).await.unwrap();
    let mut behind = streams.read(&session, 1).await.unwrap();
    write(&streams, &session, None, &["a", "b"]).await;
    take(&mut up_to_date, 2).await;
    streams.reset(&session).await.unwrap();
    assert_resync(&next(&mut behind).await, 2);
    write(&streams, &session, None, &["c"]).await;
    for reader in [&mut up_to_date, &mut behind] {
        let chunk = next(reader).await;
        assert_eq!(chunk.seq, 3);
        assert_ne!(chunk.chunk.kind, ChunkKind::StreamResync);
    }
}

/// A reader with a cursor beyond the end of the stream gets one resync and then the chunks that follow the last one.
/// Waiting for the number of the cursor would hide the chunks before it.
pub async fn a_cursor_beyond_the_end_gets_one_resync(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let mut early = streams.read(&session, 100).await.unwrap();
    assert_resync(&next(&mut early).await, 0);
    write(&streams, &session, None, &["a"]).await;
    let mut late = streams.read(&session, 3).await.unwrap();
    assert_resync(&next(&mut late).await, 1);
    write(&streams, &session, None, &["b"]).await;
    assert_eq!(numbers(&take(&mut early, 2).await), [1, 2]);
    assert_eq!(numbers(&take(&mut late, 1).await), [2]);
}
