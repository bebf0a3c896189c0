//! Stream readers: they read the existing chunks from the file and then follow the stream.

use std::collections::{HashSet, VecDeque};

use rusqlite::{Connection, params};

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Attempt, Replay, SessionWatermark, StoredChunk, StreamInfo, decode_open,
};

use super::row::{self, StreamRow};
use super::watch::Subscription;
use crate::error::{Failure, corrupt, of_session};
use crate::unsigned::Unsigned;
use crate::{SqliteStore, clock, row_key};

/// The maximum number of batches that a reader fetches at once.
const BATCHES: u32 = 64;

/// A stream reader, its cursor, and the chunks that it has already fetched.
pub(super) struct Reader {
    store: SqliteStore,
    subscription: Subscription,
    session: SessionId,
    cursor: u64,
    /// The key of the stream that the reader last saw, or 0 if it has not seen a stream.
    seen: i64,
    ready: VecDeque<StoredChunk>,
}

impl Reader {
    pub(super) fn new(store: SqliteStore, session: &SessionId, from: u64) -> Result<Self> {
        let subscription = store.inner.watch.subscribe(session)?;
        let (session, cursor) = (session.clone(), from.max(1));
        Ok(Self { store, subscription, session, cursor, seen: 0, ready: VecDeque::new() })
    }

    pub(super) async fn next(&mut self) -> Result<StoredChunk> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(chunk);
            }
            // Register for notification before reading, so that a later write wakes this reader.
            let written = self.subscription.written();
            let (session, cursor, seen) = (self.session.clone(), self.cursor, self.seen);
            let fetch =
                move |connection: &mut Connection| fetch(connection, &session, cursor, seen);
            let fetched = self.store.inner.readers.run(fetch).await;
            let fetched = fetched
                .map_err(|error| of_session(error, &self.session).with_operation("stream::read"))?;
            (self.cursor, self.seen) = (fetched.next, fetched.seen);
            if fetched.chunks.is_empty() && !fetched.more {
                written.await;
            }
            self.ready = fetched.chunks;
        }
    }
}

/// The result of one fetch.
struct Fetched {
    chunks: VecDeque<StoredChunk>,
    /// The cursor of the next fetch.
    next: u64,
    /// `true` if the stream had more chunks.
    more: bool,
    /// The key of the stream, or the previous key if there is no stream.
    seen: i64,
}

fn fetch(
    connection: &mut Connection,
    session: &SessionId,
    from: u64,
    seen: i64,
) -> Result<Fetched, Failure> {
    // One transaction, so that both queries read the same state.
    let transaction = connection.transaction()?;
    let decode = |_, text: &str| decode_open(session, text);
    let row = StreamRow::find(&mut *transaction.prepare_cached(row::FIND)?, session, decode)?;
    let row = row.unwrap_or_default();
    let (last_seq, discarded) = (row.state.last_seq, discarded(&transaction, row.key)?);
    let is_new_stream = from > 1 && seen != 0 && row.key != 0 && row.key != seen;
    let mut replay = if is_new_stream {
        Replay::from_start(row.trimmed, discarded)
    } else {
        Replay::new(from, last_seq, row.trimmed, discarded)
    };
    let seen = if row.key == 0 { seen } else { row.key };
    let mut statement = transaction.prepare_cached(
        "SELECT key, count, body FROM chunks WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
    )?;
    let places = row_key::since(row.key, replay.from());
    let mut rows = statement.query(params![places.start(), places.end(), BATCHES])?;
    let (mut batches, mut end) = (0, 0);
    while let Some(batch) = rows.next()? {
        end = row_key::number(batch.get(0)?);
        let body = batch.get_ref(2)?.as_blob().ok();
        let count = body.and_then(|body| replay.add(end, body));
        if count != Some(Unsigned::get(batch, 1)?) {
            return Err(corrupt(session, "chunks of the stream cannot be read"));
        }
        batches += 1;
    }
    let more = batches == BATCHES;
    let next = if more { end + 1 } else { last_seq + 1 };
    Ok(Fetched { chunks: replay.finish(session, clock::now()), next, more, seen })
}

/// Returns the discarded attempts whose chunks may still be kept.
fn discarded(connection: &Connection, stream: i64) -> Result<HashSet<Attempt>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT attempt FROM discarded WHERE stream = ?1")?;
    let attempts = statement.query_map([stream], |row| Unsigned::get(row, 0).map(Attempt))?;
    Ok(attempts.collect::<rusqlite::Result<_>>()?)
}

/// Returns the state of a stream.
pub(super) fn info(connection: &Connection, session: &SessionId) -> Result<StreamInfo, Failure> {
    let decode = |_, text: &str| decode_open(session, text);
    let row = StreamRow::find(&mut *connection.prepare_cached(row::FIND)?, session, decode)?;
    let Some(StreamRow { key, trimmed, mut state }) = row else {
        return Ok(StreamInfo::default());
    };
    let mut statement = connection.prepare_cached(
        "SELECT session, version, seq, fencing_token FROM marks WHERE stream = ?1",
    )?;
    let marks = statement.query_map([key], |row| {
        let marked = SessionWatermark {
            version: Unsigned::get(row, 1)?,
            seq: Unsigned::get(row, 2)?,
            fencing_token: Unsigned::get(row, 3)?,
        };
        Ok((SessionId::from(row.get::<_, String>(0)?), marked))
    })?;
    for mark in marks {
        let (child, marked) = mark?;
        state.marked.insert(child, marked);
    }
    Ok(state.info(trimmed))
}
