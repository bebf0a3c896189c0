//! Snapshots as rows.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, params};

use helix_agents_core::id::{AppendId, SessionId};
use helix_agents_core::store::{Position, Snapshot};

use crate::error::Failure;
use crate::prepared::Tables;
use crate::unsigned::Unsigned;

/// Saves a snapshot, unless a newer one is saved or the log does not reach its version.
pub(super) fn save(
    tables: &mut Tables<'_>,
    session: &SessionId,
    snapshot: &Snapshot,
) -> Result<(), Failure> {
    let Snapshot { position, fold, body } = snapshot;
    tables
        .connection
        .prepare_cached(
            "INSERT INTO snapshots (session, version, append, fold, body)
             SELECT id, ?2, ?3, ?4, ?5 FROM sessions WHERE session = ?1 AND version >= ?2
             ON CONFLICT (session) DO UPDATE SET version = excluded.version,
                 append = excluded.append, fold = excluded.fold, body = excluded.body
             WHERE version <= excluded.version",
        )?
        .execute(params![
            session.as_str(),
            Unsigned(position.version),
            position.append.as_str(),
            fold,
            &body[..]
        ])?;
    Ok(())
}

/// Returns the saved snapshot of a session, if there is one.
pub(super) fn find(
    connection: &Connection,
    session: &SessionId,
) -> Result<Option<Snapshot>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT kept.version, kept.append, kept.fold, kept.body
         FROM sessions JOIN snapshots AS kept ON kept.session = sessions.id
         WHERE sessions.session = ?1",
    )?;
    let found = statement.query_row([session.as_str()], |row| {
        Ok(Snapshot {
            position: Position {
                version: Unsigned::get(row, 0)?,
                append: AppendId::from(row.get::<_, String>(1)?),
            },
            fold: row.get(2)?,
            body: Bytes::from(row.get::<_, Vec<u8>>(3)?),
        })
    });
    Ok(found.optional()?)
}
