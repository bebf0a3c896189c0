//! Helpers for scenarios: creating, writing and comparing chunks.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::Expect;
use futures_util::StreamExt as _;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{
    Attempt, Boundary, Chunk, ChunkKind, ChunkStream, Effect, StoredChunk, StreamManager, Watermark,
};
use helix_agents_test::within;

use crate::ids::batch_id;

pub(crate) type Streams = Arc<dyn StreamManager>;

/// Deletes the stream as it is.
pub(crate) async fn forget(streams: &Streams, stream: &SessionId) {
    let seen = streams.info(stream).await.unwrap();
    assert!(streams.forget(stream, &seen).await.unwrap());
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::from(text)
}

pub(crate) fn chunk(session: &SessionId, kind: ChunkKind) -> Chunk {
    Chunk {
        agent: "agent".into(),
        session: session.clone(),
        run: "r".into(),
        step: 1,
        at: Timestamp(1_700_000_000_000),
        kind,
    }
}

pub(crate) fn text(session: &SessionId, delta: &str) -> Chunk {
    let delta = delta.to_owned();
    chunk(session, ChunkKind::TextDelta { delta })
}

/// Returns the chunk that announcements of a writer equal, except for their kind.
pub(crate) fn origin(session: &SessionId) -> Chunk {
    chunk(session, ChunkKind::RunStarted { turn: 1 })
}

pub(crate) fn model(step: u32) -> Effect {
    Effect::Model { step }
}

pub(crate) fn tool(call: &str) -> Effect {
    Effect::Tool { call: call.into() }
}

/// Returns a watermark that only contains the version of the log.
pub(crate) fn mark(session: &SessionId, version: u64) -> Watermark {
    Watermark {
        version,
        settled: Vec::new(),
        discarded: Vec::new(),
        origin: origin(session).into(),
        boundaries: Vec::new(),
    }
}

/// Returns the boundary of a step that the event of that version closed.
pub(crate) fn closing(session: &SessionId, version: u64) -> Boundary {
    Boundary { version, chunk: chunk(session, ChunkKind::Checkpoint { version }).into() }
}

/// Starts an attempt at `effect`.
pub(crate) async fn begin(streams: &Streams, session: &SessionId, effect: &Effect) -> Attempt {
    streams.begin(batch_id(), session, effect, origin(session)).await.unwrap()
}

/// Writes each text as a separate chunk, all in one batch.
pub(crate) async fn write(
    streams: &Streams,
    session: &SessionId,
    attempt: Option<Attempt>,
    texts: &[&str],
) -> u64 {
    let chunks = texts.iter().map(|delta| text(session, delta)).collect();
    streams.append_chunks(batch_id(), session, attempt, chunks).await.unwrap()
}

/// Asserts that a chunk of this attempt is refused and changes nothing.
pub(crate) async fn refused(streams: &Streams, session: &SessionId, attempt: Attempt) {
    let before = streams.info(session).await.unwrap();
    let chunks = vec![text(session, "late")];
    let error =
        streams.append_chunks(batch_id(), session, Some(attempt), chunks).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::AttemptDiscarded);
    assert_eq!(streams.info(session).await.unwrap(), before);
}

/// Returns the next chunk of a reader.
pub(crate) async fn next(reader: &mut ChunkStream) -> StoredChunk {
    within(reader.next()).await.unwrap().unwrap()
}

/// Returns the next `count` chunks of a reader.
pub(crate) async fn take(reader: &mut ChunkStream, count: usize) -> Vec<StoredChunk> {
    let mut chunks = Vec::with_capacity(count);
    while chunks.len() < count {
        chunks.push(next(reader).await);
    }
    chunks
}

/// Returns the chunks of a reader up to the chunk with that number.
pub(crate) async fn take_to(reader: &mut ChunkStream, last: u64) -> Vec<StoredChunk> {
    let mut chunks = Vec::new();
    while chunks.last().is_none_or(|stored: &StoredChunk| stored.seq < last) {
        chunks.push(next(reader).await);
    }
    chunks
}

/// Returns all current chunks from `from` on. This works because the last chunk of a stream is never a
/// discarded one: its announcement follows it.
pub(crate) async fn replay(streams: &Streams, session: &SessionId, from: u64) -> Vec<StoredChunk> {
    let info = streams.info(session).await.unwrap();
    if info.first_seq == 0 {
        return Vec::new();
    }
    let mut reader = streams.read(session, from).await.unwrap();
    take_to(&mut reader, info.last_seq).await
}

pub(crate) fn numbers(chunks: &[StoredChunk]) -> Vec<u64> {
    chunks.iter().map(|stored| stored.seq).collect()
}

/// Returns the texts of the chunks.
pub(crate) fn texts(chunks: &[StoredChunk]) -> Vec<&str> {
    let text = |stored: &'_ StoredChunk| matches!(stored.chunk.kind, ChunkKind::TextDelta { .. });
    chunks
        .iter()
        .filter(|stored| text(stored))
        .map(|stored| match &stored.chunk.kind {
            ChunkKind::TextDelta { delta } => delta.as_str(),
            _ => "",
        })
        .collect()
}

/// Compares chunks, one line each: number, attempt, and content.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "makes the calls shorter")]
pub(crate) fn check(chunks: &[StoredChunk], expected: Expect) {
    let mut lines = String::new();
    for StoredChunk { seq, attempt, chunk } in chunks {
        let attempt = attempt.map_or_else(|| "-".to_owned(), |attempt| attempt.0.to_string());
        let shown = match &chunk.kind {
            ChunkKind::TextDelta { delta } => format!("text {delta}"),
            ChunkKind::StepCommitted { attempts, version } => {
                format!("committed {} at {version}", joined(attempts))
            }
            ChunkKind::StepDiscarded { attempts } => format!("discarded {}", joined(attempts)),
            ChunkKind::Checkpoint { version } => format!("checkpoint {version}"),
            ChunkKind::StreamResync => "resync".to_owned(),
            other => format!("{other:?}"),
        };
        writeln!(lines, "{seq} {attempt} {shown}").unwrap();
    }
    expected.assert_eq(&lines);
}

fn joined(attempts: &[Attempt]) -> String {
    let numbers: Vec<String> = attempts.iter().map(|attempt| attempt.0.to_string()).collect();
    numbers.join("+")
}
