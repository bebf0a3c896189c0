//! A stream's own row, and the statements of every step.

use rusqlite::{Connection, OptionalExtension as _, Statement, params};

use serde::{Deserialize, Serialize};

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Effect};

use super::json;
use crate::error::{Failure, corrupt};
use crate::prepared::Prepared;

/// Finds a stream by its session.
pub(super) const FIND: &str = "SELECT id, last_seq, trimmed, last_attempt, marked, open, marked_seq FROM streams \
     WHERE session = ?1";

/// What every step needs.
pub(crate) struct Statements<'c> {
    pub(super) find: Prepared<'c>,
    pub(super) save: Prepared<'c>,
    /// A row of chunks.
    pub(super) add: Prepared<'c>,
}

impl<'c> Statements<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        let prepared = |sql| Prepared::new(connection, sql);
        Self {
            find: prepared(FIND),
            save: prepared(
                "UPDATE streams SET last_seq = ?2, trimmed = ?3, last_attempt = ?4, marked = ?5,
                     open = ?6, marked_seq = ?7
                 WHERE id = ?1",
            ),
            add: prepared("INSERT INTO chunks (key, count, body) VALUES (?1, ?2, ?3)"),
        }
    }
}

/// How a stream stands.
#[derive(Debug, Default)]
pub(super) struct StreamRow {
    pub(super) key: i64,
    pub(super) last_seq: u64,
    /// The last chunk that is not kept any more.
    pub(super) trimmed: u64,
    pub(super) last_attempt: u64,
    pub(super) marked: u64,
    pub(super) marked_seq: u64,
    /// Attempts that were neither settled nor discarded, in the order in which they began.
    pub(super) open: Vec<Open>,
}

/// An attempt that was neither settled nor discarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Open {
    #[serde(rename = "a")]
    pub(super) attempt: Attempt,
    #[serde(rename = "e")]
    pub(super) effect: Effect,
    /// The child that tries; none for the stream's own session.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(super) child: Option<SessionId>,
    /// The last chunk before it began.
    #[serde(rename = "b")]
    pub(super) began: u64,
}

impl StreamRow {
    /// The row of the stream, with the statement [`FIND`].
    pub(super) fn find(
        statement: &mut Statement<'_>,
        session: &SessionId,
    ) -> Result<Option<Self>, Failure> {
        let row = statement.query_row([session.as_str()], |row| {
            let open = row.get_ref(5)?.as_str()?;
            let open = serde_json::from_str(open).ok();
            let row = Self {
                key: row.get(0)?,
                last_seq: row.get(1)?,
                trimmed: row.get(2)?,
                last_attempt: row.get(3)?,
                marked: row.get(4)?,
                marked_seq: row.get(6)?,
                open: Vec::new(),
            };
            Ok((row, open))
        });
        let Some((row, open)) = row.optional()? else { return Ok(None) };
        let open =
            open.ok_or_else(|| corrupt(session, "the attempts of the stream cannot be read"))?;
        Ok(Some(Self { open, ..row }))
    }

    /// Makes the row of a new stream.
    pub(super) fn begin(connection: &Connection, session: &SessionId) -> Result<Self, Failure> {
        connection
            .prepare_cached("INSERT INTO streams (session) VALUES (?1)")?
            .execute([session.as_str()])?;
        Ok(Self { key: connection.last_insert_rowid(), ..Self::default() })
    }

    pub(super) fn save(&self, statement: &mut Statement<'_>) -> Result<(), Failure> {
        statement.execute(params![
            self.key,
            self.last_seq,
            self.trimmed,
            self.last_attempt,
            self.marked,
            json(&self.open)?,
            self.marked_seq,
        ])?;
        Ok(())
    }

    pub(super) fn is_open(&self, attempt: Attempt) -> bool {
        self.open.iter().any(|open| open.attempt == attempt)
    }

    /// Takes those that are open off the list of open attempts; returns them.
    pub(super) fn close(&mut self, attempts: &[Attempt]) -> Vec<Attempt> {
        let closed = self.open.extract_if(.., |open| attempts.contains(&open.attempt));
        closed.map(|open| open.attempt).collect()
    }
}
