//! Stream readers: they read the existing chunks from the database and then follow the stream.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Replay, StoredChunk};

use super::row::unsigned;
use super::watch::Subscription;
use crate::Inner;
use crate::connections::drive;
use crate::detached::detached;
use crate::error::{Failure, closed, corrupt, located};
use crate::sql::{Schema, Sql, signed};

/// The maximum number of batches that a reader fetches at once.
const BATCHES: u64 = 64;

/// Fetches the batches that contain chunk `$2` or later ones, unless the reader last saw another
/// stream (`$4`). One statement reads everything, so that it sees one state. Trimmed chunks do not
/// exist any more, and no chunk is beyond the last one.
const FETCH: &str = "
    SELECT stream.last_seq, stream.trimmed, {now},
        ARRAY(SELECT attempt FROM {s}.discarded WHERE discarded.stream = stream.id),
        batch.last, batch.count, batch.body, stream.id
    FROM {s}.streams AS stream LEFT JOIN LATERAL (
        SELECT last, count, body FROM {s}.chunks
        WHERE chunks.stream = stream.id
            AND last >= greatest(CASE WHEN $4 IN (0, stream.id) THEN $2 END, stream.trimmed + 1)
        ORDER BY last LIMIT $3
    ) AS batch ON true
    WHERE stream.session = $1
    ORDER BY batch.last";

#[derive(Debug)]
pub(super) struct Statements {
    fetch: Sql,
}

impl Statements {
    pub(super) fn new(schema: &Schema) -> Self {
        Self { fetch: schema.sql(FETCH) }
    }
}

/// A stream reader, its cursor, and the chunks that it has already fetched.
pub(super) struct Reader {
    inner: Arc<Inner>,
    subscription: Subscription,
    session: SessionId,
    cursor: u64,
    /// The id of the stream that the reader last saw, or 0 if it has not seen a stream.
    seen: i64,
    ready: VecDeque<StoredChunk>,
}

impl Reader {
    pub(super) fn new(
        inner: Arc<Inner>,
        subscription: Subscription,
        session: &SessionId,
        from: u64,
    ) -> Self {
        let (session, cursor) = (session.clone(), from.max(1));
        Self { inner, subscription, session, cursor, seen: 0, ready: VecDeque::new() }
    }

    pub(super) async fn next(&mut self) -> Result<StoredChunk> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(chunk);
            }
            // Register for notification before reading, so that a later write wakes this reader.
            let written = self.subscription.written();
            if self.subscription.is_closed() {
                return Err(closed());
            }
            let (inner, session) = (Arc::clone(&self.inner), self.session.clone());
            let (cursor, seen) = (self.cursor, self.seen);
            let lookup = async move {
                let sql = &inner.streams.read.fetch;
                let fetched = drive!(inner.connections, |connection| fetch(
                    connection, sql, &session, cursor, seen
                ));
                located(fetched, "stream::read", &session)
            };
            let fetched = detached(lookup).await?;
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
    /// The id of the stream, or the previous id if there is no stream.
    seen: i64,
}

async fn fetch(
    connection: &mut PgConnection,
    sql: &Sql,
    session: &SessionId,
    from: u64,
    seen: i64,
) -> Result<Fetched, Failure> {
    let query = sql.query().bind(session.as_str()).bind(signed(from)).bind(signed(BATCHES));
    let rows = query.bind(seen).fetch_all(connection).await?;
    let mut id = seen;
    let (mut last_seq, mut trimmed, mut now) = (0, 0, Timestamp(0));
    let mut discarded = HashSet::new();
    if let Some(row) = rows.first() {
        (last_seq, trimmed) =
            (unsigned(row.try_get(0)?, session)?, unsigned(row.try_get(1)?, session)?);
        now = Timestamp(row.try_get(2)?);
        id = row.try_get(7)?;
        for attempt in row.try_get::<Vec<i64>, _>(3)? {
            discarded.insert(Attempt(unsigned(attempt, session)?));
        }
    }
    let mut replay = if from <= 1 || seen == 0 || seen == id {
        Replay::new(from, last_seq, trimmed, discarded)
    } else {
        Replay::from_start(trimmed, discarded)
    };
    let (mut batches, mut end) = (0, 0);
    for row in &rows {
        let Some(last) = row.try_get::<Option<i64>, _>(4)? else { break };
        end = unsigned(last, session)?;
        let count = replay.add(end, row.try_get(6)?);
        if count != Some(unsigned(row.try_get(5)?, session)?) {
            return Err(corrupt(session, "chunks of the stream are unreadable"));
        }
        batches += 1;
    }
    let more = batches == BATCHES;
    let next = if more { end + 1 } else { last_seq + 1 };
    Ok(Fetched { chunks: replay.finish(session, now), next, more, seen: id })
}
