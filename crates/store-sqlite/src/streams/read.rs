//! Reading streams: first from the file, then as it grows.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{
    Attempt, Chunk, ChunkKind, Marked, OpenAttempt, StoredChunk, StreamInfo,
};

use super::body::Group;
use super::row::{self, StreamRow};
use super::watch::Subscription;
use crate::error::{Failure, corrupt, of_session};
use crate::{SqliteStore, clock, place};

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
    let row = StreamRow::find(&mut *transaction.prepare_cached(row::FIND)?, session)?;
    let row = row.unwrap_or_default();
    let missing = if from <= row.trimmed {
        Some(row.trimmed)
    } else if from > row.last_seq + 1 {
        Some(row.last_seq)
    } else {
        None
    };
    let from = missing.map_or(from, |seq| seq + 1);
    let discarded = discarded(&transaction, row.key)?;
    let mut statement = transaction.prepare_cached(
        "SELECT key, count, body FROM chunks WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
    )?;
    let places = place::since(row.key, from);
    let mut rows = statement.query(params![places.start(), places.end(), BATCHES])?;
    let (mut chunks, mut batches, mut end) = (VecDeque::new(), 0, 0);
    while let Some(batch) = rows.next()? {
        end = decode(batch, session, from, &discarded, &mut chunks)?;
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

/// The discarded attempts of which chunks may be kept.
fn discarded(connection: &Connection, stream: i64) -> Result<HashSet<Attempt>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT attempt FROM discarded WHERE stream = ?1")?;
    let attempts = statement.query_map([stream], |row| row.get(0).map(Attempt))?;
    Ok(attempts.collect::<rusqlite::Result<_>>()?)
}

/// Adds the chunks of one batch from `from` on; returns the number of its last one.
fn decode(
    row: &Row<'_>,
    session: &SessionId,
    from: u64,
    discarded: &HashSet<Attempt>,
    chunks: &mut VecDeque<StoredChunk>,
) -> Result<u64, Failure> {
    let (last, count): (u64, u64) = (place::number(row.get(0)?), row.get(1)?);
    let damaged = || corrupt(session, "chunks of the stream cannot be read");
    let body = row.get_ref(2)?.as_blob().map_err(|_| damaged())?;
    let groups = Group::all(body).ok_or_else(damaged)?;
    let there: usize = groups.iter().map(|group| group.chunks.len()).sum();
    if there as u64 != count {
        return Err(damaged());
    }
    let mut seq = last.checked_sub(count).ok_or_else(damaged)?;
    for group in groups {
        let attempt = group.attempt;
        let is_discarded = attempt.is_some_and(|attempt| discarded.contains(&attempt));
        for chunk in group.chunks() {
            seq += 1;
            if seq >= from && !is_discarded {
                chunks.push_back(StoredChunk { seq, attempt, chunk: Arc::new(chunk) });
            }
        }
    }
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
    let row = StreamRow::find(&mut *connection.prepare_cached(row::FIND)?, session)?;
    let Some(row) = row else { return Ok(StreamInfo::default()) };
    let mut statement =
        connection.prepare_cached("SELECT session, version, seq FROM marks WHERE stream = ?1")?;
    let marks = statement.query_map([row.key], |row| {
        let marked = Marked { version: row.get(1)?, seq: row.get(2)? };
        Ok((SessionId::from(row.get::<_, String>(0)?), marked))
    })?;
    let mut marked = marks.collect::<rusqlite::Result<BTreeMap<_, _>>>()?;
    if row.marked > 0 {
        marked.insert(session.clone(), Marked { version: row.marked, seq: row.marked_seq });
    }
    let open = row.open.into_iter().map(|open| OpenAttempt {
        attempt: open.attempt,
        session: open.child.unwrap_or_else(|| session.clone()),
        effect: open.effect,
        began: open.began,
    });
    let kept = row.trimmed < row.last_seq;
    Ok(StreamInfo {
        first_seq: if kept { row.trimmed + 1 } else { 0 },
        last_seq: row.last_seq,
        marked,
        open: open.collect(),
    })
}
