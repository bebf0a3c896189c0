//! Reading logs, and telling whether they are whole.

use std::ops::RangeInclusive;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{Position, StoredAppend};

use crate::error::{Failure, corrupt, not_found};
use crate::place;

/// A session's log, in parts: the last one is its own, those before it belong to the logs that it
/// was forked from.
pub(super) struct Log {
    parts: Vec<Part>,
}

/// Appends that lie one behind the other.
struct Part {
    key: i64,
    /// The version before the first of them.
    after: u64,
    /// The version after the last of them; no bound for the log's own.
    up_to: Option<u64>,
}

impl Part {
    fn holds(&self, version: u64) -> bool {
        self.after < version && self.up_to.is_none_or(|end| version <= end)
    }

    fn keys(&self, version: u64) -> RangeInclusive<i64> {
        let all = place::since(self.key, self.after.max(version));
        let end = self.up_to.map_or(*all.end(), |end| place::up_to(self.key, end));
        *all.start()..=end
    }
}

impl Log {
    /// The log of that key.
    pub(super) fn of(connection: &Connection, key: i64) -> Result<Self, Failure> {
        let mut parts = vec![Part { key, after: 0, up_to: None }];
        let mut key = key;
        while let Some((base, version)) = base(connection, key)? {
            if base >= key {
                let message = "a log goes on from one that is younger";
                return Err(Error::new(ErrorCode::StoreCorrupt, message).into());
            }
            if let Some(part) = parts.last_mut() {
                part.after = version;
            }
            parts.push(Part { key: base, after: 0, up_to: Some(version) });
            key = base;
        }
        parts.reverse();
        Ok(Self { parts })
    }

    /// The key of the log that has the append with this event.
    pub(super) fn owner(&self, version: u64) -> Option<i64> {
        self.part(version).map(|part| part.key)
    }

    /// The version after which the log has appends of its own; 0 unless it was forked.
    pub(super) fn shared(&self) -> u64 {
        self.parts.last().map_or(0, |own| own.after)
    }

    fn part(&self, version: u64) -> Option<&Part> {
        self.parts.iter().find(|part| part.holds(version))
    }

    /// The appends after a version, gapless.
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
        for part in &self.parts {
            if part.up_to.is_some_and(|end| end <= version) {
                continue;
            }
            let taken = u32::try_from(appends.len()).unwrap_or(u32::MAX);
            let keys = part.keys(version);
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

    /// Id and time of the append whose first event has this place.
    pub(super) fn starting_at(
        &self,
        connection: &Connection,
        first: u64,
    ) -> Result<Option<(AppendId, Timestamp)>, Failure> {
        let Some(part) = self.part(first) else { return Ok(None) };
        let mut statement =
            connection.prepare_cached("SELECT id, at FROM appends WHERE key = ?1")?;
        let found = statement.query_row([place::up_to(part.key, first)], |row| {
            Ok((AppendId::from(row.get::<_, String>(0)?), Timestamp(row.get(1)?)))
        });
        Ok(found.optional()?)
    }

    /// Whether the log once ended at this position.
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

    /// The position after the append that this version is in, and the append's time.
    pub(super) fn covering(
        &self,
        connection: &Connection,
        version: u64,
    ) -> Result<Option<(Position, Timestamp)>, Failure> {
        let Some(part) = self.part(version) else { return Ok(None) };
        let mut statement = connection.prepare_cached(
            "SELECT key, count, id, at FROM appends
             WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
        )?;
        let up_to = (*part.keys(0).start(), place::up_to(part.key, version));
        let found = statement.query_row(up_to, |row| {
            let next = place::number(row.get(0)?) + u64::from(row.get::<_, u32>(1)?);
            let append = AppendId::from(row.get::<_, String>(2)?);
            let position = Position { version: next.saturating_sub(1), append };
            Ok((position, Timestamp(row.get(3)?)))
        });
        Ok(found.optional()?)
    }
}

/// The log that one begins with, and up to which version, if it was forked.
fn base(connection: &Connection, key: i64) -> Result<Option<(i64, u64)>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT base, version FROM forks WHERE log = ?1")?;
    let found = statement.query_row([key], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

/// The appends of a session after a version.
pub(super) fn read(
    connection: &mut Connection,
    session: &SessionId,
    version: u64,
    limit: u32,
) -> Result<Vec<StoredAppend>, Failure> {
    // One moment for all queries.
    let transaction = connection.transaction()?;
    let mut statement =
        transaction.prepare_cached("SELECT id, version FROM sessions WHERE session = ?1")?;
    let found = statement.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    let (key, end): (i64, u64) = found.optional()?.ok_or_else(|| not_found(session))?;
    let log = Log::of(&transaction, key)?;
    let appends = log.after(&transaction, session, version, limit)?;
    let begins = appends.first().map_or(end, |it| it.first - 1);
    let covered = || -> Result<u64, Failure> {
        let found = log.covering(&transaction, version)?;
        Ok(found.map_or(0, |(position, _)| position.version))
    };
    let missing = limit > 0 && version < begins && covered()? != begins;
    let all = appends.len() < usize::try_from(limit).unwrap_or(usize::MAX);
    let ends = appends.last().map_or(end, StoredAppend::version);
    if missing || ends > end || (all && ends < end) {
        return Err(corrupt(session, "the log does not have what its head says"));
    }
    Ok(appends)
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredAppend> {
    Ok(StoredAppend {
        first: place::number(row.get(0)?),
        count: row.get(1)?,
        id: AppendId::from(row.get::<_, String>(2)?),
        run: row.get::<_, Option<String>>(3)?.map(RunId::from),
        schema: row.get(4)?,
        at: Timestamp(row.get(5)?),
        body: Bytes::from(row.get::<_, Vec<u8>>(6)?),
    })
}
