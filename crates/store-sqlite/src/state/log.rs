//! Reading and verification of logs.

use std::ops::RangeInclusive;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{Position, StoredAppend};

use crate::error::{Failure, corrupt, not_found};
use crate::row_key;
use crate::unsigned::Unsigned;

/// A session's log as segments. The last segment is its own; earlier ones belong to the logs that
/// it was forked from.
pub(super) struct Log {
    segments: Vec<Segment>,
}

/// A contiguous range of appends.
struct Segment {
    key: i64,
    /// The version before the first append.
    after: u64,
    /// The version after the last append. `None` for the log's own segment, which is unbounded.
    up_to: Option<u64>,
}

impl Segment {
    fn holds(&self, version: u64) -> bool {
        self.after < version && self.up_to.is_none_or(|end| version <= end)
    }

    fn keys(&self, version: u64) -> RangeInclusive<i64> {
        let all = row_key::since(self.key, self.after.max(version));
        let end = self.up_to.map_or(*all.end(), |end| row_key::up_to(self.key, end));
        *all.start()..=end
    }
}

impl Log {
    /// Loads the log with the given key.
    pub(super) fn of(connection: &Connection, key: i64) -> Result<Self, Failure> {
        let mut segments = vec![Segment { key, after: 0, up_to: None }];
        let mut key = key;
        while let Some((base, version)) = base(connection, key)? {
            if base >= key {
                let message = "a log is forked from a newer log";
                return Err(Error::new(ErrorCode::StoreCorrupt, message).into());
            }
            if let Some(segment) = segments.last_mut() {
                segment.after = version;
            }
            segments.push(Segment { key: base, after: 0, up_to: Some(version) });
            key = base;
        }
        segments.reverse();
        Ok(Self { segments })
    }

    /// Returns the key of the log that contains the append with this version.
    pub(super) fn owner(&self, version: u64) -> Option<i64> {
        self.segment(version).map(|segment| segment.key)
    }

    /// Returns the version after which the log has its own appends. It is 0 unless the log was
    /// forked.
    pub(super) fn shared(&self) -> u64 {
        self.segments.last().map_or(0, |own| own.after)
    }

    fn segment(&self, version: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.holds(version))
    }

    /// Returns the appends after a version, without gaps.
    pub(super) fn after(
        &self,
        connection: &Connection,
        session: &SessionId,
        version: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>, Failure> {
        let mut statement = connection.prepare_cached(
            "SELECT key, count, id, run, schema, at, body FROM appends
             WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3",
        )?;
        let mut appends: Vec<StoredAppend> = Vec::new();
        for segment in &self.segments {
            if segment.up_to.is_some_and(|end| end <= version) {
                continue;
            }
            let taken = u32::try_from(appends.len()).unwrap_or(u32::MAX);
            let keys = segment.keys(version);
            let mut rows =
                statement.query(params![keys.start(), keys.end(), limit.saturating_sub(taken)])?;
            while let Some(row) = rows.next()? {
                let append = stored(row)?;
                let before = appends.last().map(StoredAppend::version);
                let follows = before.is_none_or(|before| append.first == before + 1);
                if append.first == 0 || append.count == 0 || !follows {
                    return Err(corrupt(session, "appends of the log are missing or overlap"));
                }
                appends.push(append);
            }
        }
        Ok(appends)
    }

    /// Returns the id and the time of the append whose first event has this version.
    pub(super) fn starting_at(
        &self,
        connection: &Connection,
        first: u64,
    ) -> Result<Option<(AppendId, Timestamp)>, Failure> {
        let Some(segment) = self.segment(first) else { return Ok(None) };
        let mut statement =
            connection.prepare_cached("SELECT id, at FROM appends WHERE key = ?1")?;
        let found = statement.query_row([row_key::up_to(segment.key, first)], |row| {
            Ok((AppendId::from(row.get::<_, String>(0)?), Timestamp(row.get(1)?)))
        });
        Ok(found.optional()?)
    }

    /// Returns `true` if the log ended at this position at some time.
    pub(super) fn reached(
        &self,
        connection: &Connection,
        position: &Position,
    ) -> Result<bool, Failure> {
        if position.version == 0 {
            return Ok(*position == Position::start());
        }
        let found = self.covering(connection, position.version)?.map(|(position, _)| position);
        Ok(found.as_ref() == Some(position))
    }

    /// Returns the position after the append that contains this version, and the append's time.
    pub(super) fn covering(
        &self,
        connection: &Connection,
        version: u64,
    ) -> Result<Option<(Position, Timestamp)>, Failure> {
        let Some(segment) = self.segment(version) else { return Ok(None) };
        let mut statement = connection.prepare_cached(
            "SELECT key, count, id, at FROM appends
             WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
        )?;
        let up_to = (*segment.keys(0).start(), row_key::up_to(segment.key, version));
        let found = statement.query_row(up_to, |row| {
            let next = row_key::number(row.get(0)?) + u64::from(row.get::<_, u32>(1)?);
            let append = AppendId::from(row.get::<_, String>(2)?);
            let position = Position { version: next.saturating_sub(1), append };
            Ok((position, Timestamp(row.get(3)?)))
        });
        Ok(found.optional()?)
    }
}

/// Returns the base of a forked log and the version up to which it is shared.
fn base(connection: &Connection, key: i64) -> Result<Option<(i64, u64)>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT base, version FROM forks WHERE log = ?1")?;
    let found = statement.query_row([key], |row| Ok((row.get(0)?, Unsigned::get(row, 1)?)));
    Ok(found.optional()?)
}

/// Returns the appends of a session after a version.
pub(super) fn read(
    connection: &mut Connection,
    session: &SessionId,
    version: u64,
    limit: u32,
) -> Result<Vec<StoredAppend>, Failure> {
    // One transaction, so that all queries read the same state.
    let transaction = connection.transaction()?;
    let mut statement =
        transaction.prepare_cached("SELECT id, version FROM sessions WHERE session = ?1")?;
    let found =
        statement.query_row([session.as_str()], |row| Ok((row.get(0)?, Unsigned::get(row, 1)?)));
    let (key, end): (i64, u64) = found.optional()?.ok_or_else(|| not_found(session))?;
    let log = Log::of(&transaction, key)?;
    let appends = log.after(&transaction, session, version, limit)?;
    let begins = appends.first().map_or(end, |append| append.first - 1);
    let covered = || -> Result<u64, Failure> {
        let found = log.covering(&transaction, version)?;
        Ok(found.map_or(0, |(position, _)| position.version))
    };
    let missing = limit > 0 && version < begins && covered()? != begins;
    let all = appends.len() < usize::try_from(limit).unwrap_or(usize::MAX);
    let ends = appends.last().map_or(end, StoredAppend::version);
    if missing || ends > end || (all && ends < end) {
        return Err(corrupt(session, "the log does not match its head"));
    }
    Ok(appends)
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredAppend> {
    Ok(StoredAppend {
        first: row_key::number(row.get(0)?),
        count: row.get(1)?,
        id: AppendId::from(row.get::<_, String>(2)?),
        run: row.get::<_, Option<String>>(3)?.map(RunId::from),
        schema: row.get(4)?,
        at: Timestamp(row.get(5)?),
        body: Bytes::from(row.get::<_, Vec<u8>>(6)?),
    })
}
