//! Reading and verification of logs. One statement reads everything, so that it sees one state.

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{Position, StoredAppend};

use crate::error::{Failure, corrupt, not_found};
use crate::sql::{Schema, Sql, signed};

/// The segments of a session's log: the last one is its own, and earlier ones belong to the logs
/// that it was forked from. The statement before it must define a table `s` with a column `log`.
pub(super) const PARTS: &str = "parts (log, after, up_to, base) AS (
        SELECT s.log, coalesce(f.version, 0), NULL::bigint, f.base
        FROM s LEFT JOIN {s}.forks f ON f.log = s.log
        UNION ALL
        SELECT p.base, coalesce(f.version, 0), p.after, f.base
        FROM parts p LEFT JOIN {s}.forks f ON f.log = p.base
        WHERE p.base IS NOT NULL
    )";

/// Reads the end of a session's log, the append that contains version `$2` (without its body), and
/// up to `$3` appends after that version.
const LOOK: &str = "
    WITH RECURSIVE s AS (
        SELECT log, version, append, updated_at, lease_until
        FROM {s}.sessions WHERE session = $1
    ), {parts}, found AS (
        (SELECT a.*, NULL::text AS run, NULL::integer AS schema, NULL::bytea AS body
         FROM parts p CROSS JOIN LATERAL (
             SELECT a.first, a.count, a.id, a.at
             FROM {s}.appends a
             WHERE a.log = p.log AND a.first > p.after AND a.first <= $2
             ORDER BY a.first DESC LIMIT 1
         ) a
         WHERE p.after < $2 AND $2 <= coalesce(p.up_to, $2))
        UNION ALL
        (SELECT a.*
         FROM parts p CROSS JOIN LATERAL (
             SELECT a.first, a.count, a.id, a.at, a.run, a.schema, a.body
             FROM {s}.appends a
             WHERE a.log = p.log AND a.first > greatest(p.after, $2)
                 AND (p.up_to IS NULL OR a.first <= p.up_to)
             ORDER BY a.first LIMIT $3
         ) a
         ORDER BY a.first LIMIT $3)
    )
    SELECT s.version, s.append, s.updated_at, s.lease_until, {now},
        found.first, found.count, found.id, found.at, found.run, found.schema, found.body,
        (SELECT p.after FROM parts p WHERE p.up_to IS NULL)
    FROM s LEFT JOIN found ON true
    ORDER BY found.first";

pub(super) fn statement(schema: &Schema) -> Sql {
    schema.sql(&LOOK.replace("{parts}", PARTS))
}

/// The result of [`lookup`].
pub(super) struct LogView {
    /// The end of the log.
    pub(super) end: Position,
    pub(super) updated_at: Timestamp,
    pub(super) lease_until: Option<Timestamp>,
    /// The server's clock.
    pub(super) now: Timestamp,
    /// The end of the append that contains the version.
    covering: Option<Position>,
    /// The version after which the log has its own appends. It is 0 unless the log was forked.
    shared: u64,
    /// The appends after the version, without gaps.
    pub(super) appends: Vec<StoredAppend>,
}

impl LogView {
    /// Returns `true` if the log ended at this position at some time. The position must have the
    /// version that was read.
    pub(super) fn reached(&self, position: &Position) -> bool {
        if position.version == 0 {
            return *position == Position::start();
        }
        self.covering.as_ref() == Some(position)
    }

    /// Returns the time of the append that created the session, if it has this id and expected this
    /// position. The position must have the version that was read.
    pub(super) fn created_as(&self, id: &AppendId, position: &Position) -> Option<Timestamp> {
        let is_own = self.shared == position.version && self.reached(position);
        self.taken_as(id).filter(|_| is_own)
    }

    /// Returns the time of the first append that was read, if it has this id.
    pub(super) fn taken_as(&self, id: &AppendId) -> Option<Timestamp> {
        self.appends.first().filter(|append| append.id == *id).map(|append| append.at)
    }
}

/// Reads a session's log after a version. Returns `None` if the session does not exist.
pub(super) async fn lookup(
    connection: &mut PgConnection,
    sql: &Sql,
    session: &SessionId,
    version: u64,
    limit: u32,
) -> Result<Option<LogView>, Failure> {
    let query = sql.query().bind(session.as_str()).bind(signed(version)).bind(i64::from(limit));
    let rows = query.fetch_all(connection).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut lookup = LogView {
        end: Position {
            version: place(row.try_get(0)?, session)?,
            append: AppendId::from(row.try_get::<&str, _>(1)?),
        },
        updated_at: Timestamp(row.try_get(2)?),
        lease_until: row.try_get::<Option<i64>, _>(3)?.map(Timestamp),
        now: Timestamp(row.try_get(4)?),
        covering: None,
        shared: place(row.try_get(12)?, session)?,
        appends: Vec::with_capacity(rows.len()),
    };
    for row in &rows {
        let Some(first) = row.try_get::<Option<i64>, _>(5)? else { continue };
        let Some(append) = stored(row, first, session)? else {
            let count = place(row.try_get(6)?, session)?;
            let version = (place(first, session)? + count).saturating_sub(1);
            let append = AppendId::from(row.try_get::<&str, _>(7)?);
            lookup.covering = Some(Position { version, append });
            continue;
        };
        let before = lookup.appends.last().map(StoredAppend::version);
        if append.count == 0 || before.is_some_and(|before| append.first != before + 1) {
            return Err(corrupt(session, "appends of the log are missing or overlap"));
        }
        lookup.appends.push(append);
    }
    Ok(Some(lookup))
}

/// Returns the appends of a session after a version.
pub(super) async fn read(
    connection: &mut PgConnection,
    sql: &Sql,
    session: &SessionId,
    version: u64,
    limit: u32,
) -> Result<Vec<StoredAppend>, Failure> {
    let lookup = lookup(connection, sql, session, version, limit).await?;
    let lookup = lookup.ok_or_else(|| not_found(session))?;
    let (appends, end) = (&lookup.appends, lookup.end.version);
    let begins = appends.first().map_or(end, |append| append.first - 1);
    let covered = lookup.covering.as_ref().map_or(0, |position| position.version);
    let missing = limit > 0 && version < begins && covered != begins;
    let all = appends.len() < usize::try_from(limit).unwrap_or(usize::MAX);
    let ends = appends.last().map_or(end, StoredAppend::version);
    if missing || ends > end || (all && ends < end) {
        return Err(corrupt(session, "the log does not match its head"));
    }
    Ok(lookup.appends)
}

/// Parses an append that was read with its body.
fn stored(row: &PgRow, first: i64, session: &SessionId) -> Result<Option<StoredAppend>, Failure> {
    let Some(body) = row.try_get::<Option<&[u8]>, _>(11)? else { return Ok(None) };
    let damaged = || corrupt(session, "an append of the log is unreadable");
    Ok(Some(StoredAppend {
        first: u64::try_from(first).ok().filter(|first| *first > 0).ok_or_else(damaged)?,
        count: u32::try_from(row.try_get::<i64, _>(6)?).map_err(|_| damaged())?,
        id: AppendId::from(row.try_get::<&str, _>(7)?),
        run: row.try_get::<Option<&str>, _>(9)?.map(RunId::from),
        schema: u16::try_from(row.try_get::<i32, _>(10)?).map_err(|_| damaged())?,
        at: Timestamp(row.try_get(8)?),
        body: Bytes::copy_from_slice(body),
    }))
}

fn place(number: i64, session: &SessionId) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| corrupt(session, "a version of the log is negative"))
}
