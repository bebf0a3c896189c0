//! Reading streams: first from the file, then as it grows.

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, OpenAttempt, StoredChunk, StreamInfo};

use super::row::StreamRow;
use super::watch::Subscription;
use crate::error::{Failure, corrupt, of_session};
use crate::{SqliteStore, clock};

/// The most batches that a reader takes from the file at once.
const BATCHES: u32 = 64;

/// A reader: which chunk of which stream it wants next, and what it has got already.
pub(super) struct Reader {
    store: SqliteStore,
    subscription: Subscription,
    session: SessionId,
    cursor: u64,
    ready: VecDeque<StoredChunk>,
}

impl Reader {
    pub(super) fn new(store: SqliteStore, session: &SessionId, from: u64) -> Result<Self> {
        let subscription = store.inner.watch.subscribe(session)?;
        let (session, cursor) = (session.clone(), from.max(1));
        Ok(Self { store, subscription, session, cursor, ready: VecDeque::new() })
    }

    pub(super) async fn next(&mut self) -> Result<StoredChunk> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(chunk);
            }
            // Made before looking, so that a write after the look wakes it.
            let written = self.subscription.written();
            let (session, cursor) = (self.session.clone(), self.cursor);
            let fetch = move |connection: &mut Connection| fetch(connection, &session, cursor);
            let part = self.store.inner.readers.run(fetch).await;
            let part = part
                .map_err(|error| of_session(error, &self.session).with_operation("stream::read"))?;
            self.cursor = part.next;
            if part.chunks.is_empty() && !part.more {
                written.await;
            }
            self.ready = part.chunks;
        }
    }
}

/// Some chunks of a stream.
struct Part {
    chunks: VecDeque<StoredChunk>,
    /// Where to go on.
    next: u64,
    /// Whether there was more when it was read.
    more: bool,
}

fn fetch(connection: &mut Connection, session: &SessionId, from: u64) -> Result<Part, Failure> {
    // One moment for both queries.
    let transaction = connection.transaction()?;
    let row = StreamRow::find(&transaction, session)?.unwrap_or_default();
    let missing = if from <= row.trimmed {
        Some(row.trimmed)
    } else if from > row.last_seq + 1 {
        Some(row.last_seq)
    } else {
        None
    };
    let from = missing.map_or(from, |seq| seq + 1);
    let mut statement = transaction.prepare_cached(
        "SELECT last_seq, count, attempt, body FROM chunks
         WHERE stream = ?1 AND last_seq >= ?2 AND NOT EXISTS (
             SELECT 1 FROM attempts WHERE attempts.stream = chunks.stream
             AND attempts.attempt = chunks.attempt AND attempts.discarded_at IS NOT NULL
         ) ORDER BY last_seq LIMIT ?3",
    )?;
    let mut rows = statement.query(params![row.key, from, BATCHES])?;
    let (mut chunks, mut batches, mut end) = (VecDeque::new(), 0, 0);
    while let Some(batch) = rows.next()? {
        end = decode(batch, session, from, &mut chunks)?;
        batches += 1;
    }
    let more = batches == BATCHES;
    let next = if more { end + 1 } else { row.last_seq + 1 };
    if let Some(seq) = missing {
        let chunk = Arc::new(resync(session, chunks.front()));
        chunks.push_front(StoredChunk { seq, attempt: None, chunk });
    }
    Ok(Part { chunks, next, more })
}

/// Adds the chunks of one batch from `from` on; returns the number of its last one.
fn decode(
    row: &Row<'_>,
    session: &SessionId,
    from: u64,
    chunks: &mut VecDeque<StoredChunk>,
) -> Result<u64, Failure> {
    let (last, count): (u64, u64) = (row.get(0)?, row.get(1)?);
    let attempt = row.get::<_, Option<u64>>(2)?.map(Attempt);
    let damaged = || corrupt(session, "chunks of the stream cannot be read");
    let body = row.get_ref(3)?.as_blob().map_err(|_| damaged())?;
    let batch: Vec<Chunk> = serde_json::from_slice(body).map_err(|_| damaged())?;
    let first = (last + 1).checked_sub(count).ok_or_else(damaged)?;
    if batch.len() as u64 != count {
        return Err(damaged());
    }
    let batch = (first..).zip(batch).filter(|(seq, _)| *seq >= from);
    chunks.extend(batch.map(|(seq, chunk)| StoredChunk { seq, attempt, chunk: Arc::new(chunk) }));
    Ok(last)
}

/// What a reader gets instead of chunks that are not kept. It looks as if it came from whoever
/// wrote the next one.
fn resync(session: &SessionId, next: Option<&StoredChunk>) -> Chunk {
    let next = next.map(|it| &*it.chunk);
    Chunk {
        agent: next.map_or_else(|| "".into(), |it| Arc::clone(&it.agent)),
        session: session.clone(),
        run: next.map_or_else(|| RunId::from(""), |it| it.run.clone()),
        step: next.map_or(0, |it| it.step),
        at: next.map_or_else(clock::now, |it| it.at),
        kind: ChunkKind::StreamResync,
    }
}

/// How the stream stands.
pub(super) fn info(
    connection: &mut Connection,
    session: &SessionId,
) -> Result<StreamInfo, Failure> {
    let transaction = connection.transaction()?;
    let Some(row) = StreamRow::find(&transaction, session)? else {
        return Ok(StreamInfo::default());
    };
    let mut statement = transaction.prepare_cached(
        "SELECT attempt, effect FROM attempts
         WHERE stream = ?1 AND discarded_at IS NULL ORDER BY attempt",
    )?;
    let mut rows = statement.query([row.key])?;
    let mut open = Vec::new();
    while let Some(attempt) = rows.next()? {
        let effect = attempt.get_ref(1)?.as_str().ok();
        let effect = effect.and_then(|it| serde_json::from_str(it).ok());
        open.push(OpenAttempt {
            attempt: Attempt(attempt.get(0)?),
            effect: effect
                .ok_or_else(|| corrupt(session, "an attempt of the stream cannot be read"))?,
        });
    }
    let kept = row.trimmed < row.last_seq;
    Ok(StreamInfo {
        first_seq: if kept { row.trimmed + 1 } else { 0 },
        last_seq: row.last_seq,
        marked: row.marked,
        open,
    })
}
