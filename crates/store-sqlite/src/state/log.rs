//! Reading logs, and telling whether they are whole.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{Position, StoredAppend};

use crate::error::{Failure, corrupt, not_found};
use crate::place;

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
        "SELECT key, count FROM appends
         WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
    )?;
    let up_to = (place::up_to(key, 0), place::up_to(key, version));
    let found = statement
        .query_row(up_to, |row| Ok(place::number(row.get(0)?) + u64::from(row.get::<_, u32>(1)?)));
    Ok(found.optional()?.map_or(0, |next| next.saturating_sub(1)))
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
        "SELECT key, count, id, run, schema, at, body FROM appends
         WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3",
    )?;
    let after = place::since(key, version);
    let mut rows = statement.query(params![after.start(), after.end(), limit])?;
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
        first: place::number(row.get(0)?),
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
    let mut statement = connection.prepare_cached("SELECT id, at FROM appends WHERE key = ?1")?;
    let found = statement.query_row([place::up_to(key, first)], |row| {
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
        "SELECT key, count, id FROM appends
         WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
    )?;
    let up_to = (place::up_to(key, 0), place::up_to(key, position.version));
    let found = statement.query_row(up_to, |row| {
        let next = place::number(row.get(0)?) + u64::from(row.get::<_, u32>(1)?);
        let append = AppendId::from(row.get::<_, String>(2)?);
        Ok(Position { version: next.saturating_sub(1), append })
    });
    Ok(found.optional()?.as_ref() == Some(position))
}
