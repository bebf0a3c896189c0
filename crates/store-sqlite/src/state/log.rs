//! Reading logs, and telling whether they are whole.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{Position, StoredAppend};

use crate::error::{Failure, corrupt, not_found};

/// The appends of a session after a version.
pub(super) fn read(
    connection: &mut Connection,
    session: &SessionId,
    version: u64,
    limit: u32,
) -> Result<Vec<StoredAppend>, Failure> {
    // One moment for both queries.
    let transaction = connection.transaction()?;
    let mut statement =
        transaction.prepare_cached("SELECT id, version FROM sessions WHERE session = ?1")?;
    let found = statement.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    let (key, end): (i64, u64) = found.optional()?.ok_or_else(|| not_found(session))?;
    let appends = after(&transaction, key, session, version, limit)?;
    let begins = appends.first().map_or(end, |it| it.first - 1);
    let missing = limit > 0 && version < begins && covered(&transaction, key, version)? != begins;
    let all = appends.len() < usize::try_from(limit).unwrap_or(usize::MAX);
    let ends = appends.last().map_or(end, StoredAppend::version);
    if missing || ends > end || (all && ends < end) {
        return Err(corrupt(session, "the log does not have what its head says"));
    }
    Ok(appends)
}

/// Where the append ends that this version is in.
fn covered(connection: &Connection, key: i64, version: u64) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT first + count - 1 FROM appends
         WHERE session = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
    )?;
    let found = statement.query_row(params![key, version], |row| row.get(0));
    Ok(found.optional()?.unwrap_or(0))
}

/// The appends of the session with that key after a version, gapless.
pub(super) fn after(
    connection: &Connection,
    key: i64,
    session: &SessionId,
    version: u64,
    limit: u32,
) -> Result<Vec<StoredAppend>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT first, count, id, run, schema, at, body FROM appends
         WHERE session = ?1 AND first > ?2 ORDER BY first LIMIT ?3",
    )?;
    // What SQLite cannot count is beyond every log.
    let version = version.min(i64::MAX.unsigned_abs());
    let mut rows = statement.query(params![key, version, limit])?;
    let mut appends: Vec<StoredAppend> = Vec::new();
    while let Some(row) = rows.next()? {
        let append = stored(row)?;
        let before = appends.last().map(StoredAppend::version);
        let follows = before.is_none_or(|before| append.first == before + 1);
        if append.first == 0 || append.count == 0 || !follows {
            return Err(corrupt(session, "appends of the log are missing or overlap"));
        }
        appends.push(append);
    }
    Ok(appends)
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredAppend> {
    Ok(StoredAppend {
        first: row.get(0)?,
        count: row.get(1)?,
        id: AppendId::from(row.get::<_, String>(2)?),
        run: row.get::<_, Option<String>>(3)?.map(RunId::from),
        schema: row.get(4)?,
        at: Timestamp(row.get(5)?),
        body: Bytes::from(row.get::<_, Vec<u8>>(6)?),
    })
}

/// Id and time of the append whose first event has this place.
pub(super) fn starting_at(
    connection: &Connection,
    key: i64,
    first: u64,
) -> Result<Option<(AppendId, Timestamp)>, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT id, at FROM appends WHERE session = ?1 AND first = ?2")?;
    let found = statement.query_row(params![key, first], |row| {
        Ok((AppendId::from(row.get::<_, String>(0)?), Timestamp(row.get(1)?)))
    });
    Ok(found.optional()?)
}

/// Whether the log once ended at this position.
pub(super) fn reached(
    connection: &Connection,
    key: i64,
    position: &Position,
) -> Result<bool, Failure> {
    if position.version == 0 {
        return Ok(*position == Position::start());
    }
    let mut statement = connection.prepare_cached(
        "SELECT first + count - 1, id FROM appends
         WHERE session = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
    )?;
    let found = statement.query_row(params![key, position.version], |row| {
        Ok(Position { version: row.get(0)?, append: AppendId::from(row.get::<_, String>(1)?) })
    });
    Ok(found.optional()?.as_ref() == Some(position))
}
