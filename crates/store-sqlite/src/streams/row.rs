//! A stream's own row.

use rusqlite::{Connection, OptionalExtension as _, params};

use helix_agents_core::id::SessionId;

use crate::error::Failure;

/// How a stream stands.
#[derive(Debug, Default)]
pub(super) struct StreamRow {
    pub(super) key: i64,
    pub(super) last_seq: u64,
    /// The last chunk that is not kept any more.
    pub(super) trimmed: u64,
    pub(super) last_attempt: u64,
    pub(super) marked: u64,
}

impl StreamRow {
    pub(super) fn find(
        connection: &Connection,
        session: &SessionId,
    ) -> Result<Option<Self>, Failure> {
        let mut statement = connection.prepare_cached(
            "SELECT id, last_seq, trimmed, last_attempt, marked FROM streams WHERE session = ?1",
        )?;
        let row = statement.query_row([session.as_str()], |row| {
            Ok(Self {
                key: row.get(0)?,
                last_seq: row.get(1)?,
                trimmed: row.get(2)?,
                last_attempt: row.get(3)?,
                marked: row.get(4)?,
            })
        });
        Ok(row.optional()?)
    }

    /// The row of the stream; makes it if there is none.
    pub(super) fn find_or_begin(
        connection: &Connection,
        session: &SessionId,
    ) -> Result<Self, Failure> {
        if let Some(row) = Self::find(connection, session)? {
            return Ok(row);
        }
        connection
            .prepare_cached("INSERT INTO streams (session) VALUES (?1)")?
            .execute([session.as_str()])?;
        Ok(Self { key: connection.last_insert_rowid(), ..Self::default() })
    }

    pub(super) fn save(&self, connection: &Connection) -> Result<(), Failure> {
        connection
            .prepare_cached(
                "UPDATE streams SET last_seq = ?2, trimmed = ?3, last_attempt = ?4, marked = ?5
                 WHERE id = ?1",
            )?
            .execute(params![
                self.key,
                self.last_seq,
                self.trimmed,
                self.last_attempt,
                self.marked
            ])?;
        Ok(())
    }
}
