//! The row of a stream and the statements that every step needs.

use rusqlite::{Connection, OptionalExtension as _, Statement, params};

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{OpenAttempt, SessionWatermark, StreamState, encode_open};

use super::saved_attempts::SavedAttempts;
use crate::error::{Failure, corrupt};
use crate::prepared::Prepared;
use crate::unsigned::Unsigned;

/// The query that finds a stream by its session.
pub(super) const FIND: &str = "SELECT id, last_seq, trimmed, last_attempt, marked, marked_seq, open, fencing_token \
     FROM streams \
     WHERE session = ?1";

/// The statements that every step needs.
pub(crate) struct Statements<'c> {
    pub(super) find: Prepared<'c>,
    pub(super) save: Prepared<'c>,
    /// Inserts a row of chunks.
    pub(super) add: Prepared<'c>,
    pub(super) attempts: SavedAttempts,
}

impl<'c> Statements<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        let prepared = |sql| Prepared::new(connection, sql);
        Self {
            find: prepared(FIND),
            save: prepared(
                "UPDATE streams SET last_seq = ?2, trimmed = ?3, last_attempt = ?4, marked = ?5,
                     marked_seq = ?6, open = ?7, fencing_token = ?8
                 WHERE id = ?1",
            ),
            add: prepared("INSERT INTO chunks (key, count, body) VALUES (?1, ?2, ?3)"),
            attempts: SavedAttempts::new(),
        }
    }
}

/// The stored row of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamRow {
    pub(super) key: i64,
    /// The sequence number of the last chunk that was trimmed.
    pub(super) trimmed: u64,
    /// The stream state without the watermarks of children, which have rows of their own.
    pub(super) state: StreamState,
}

impl StreamRow {
    /// Finds the row of a stream with the statement [`FIND`]. `decode` decodes the open attempts of
    /// the stream with this key.
    pub(super) fn find(
        statement: &mut Statement<'_>,
        session: &SessionId,
        decode: impl FnOnce(i64, &str) -> Option<Vec<OpenAttempt>>,
    ) -> Result<Option<Self>, Failure> {
        let row = statement.query_row([session.as_str()], |row| {
            let own = SessionWatermark {
                version: Unsigned::get(row, 4)?,
                seq: Unsigned::get(row, 5)?,
                fencing_token: Unsigned::get(row, 7)?,
            };
            let mut state = StreamState {
                last_seq: Unsigned::get(row, 1)?,
                last_attempt: Unsigned::get(row, 3)?,
                ..StreamState::default()
            };
            if own != SessionWatermark::default() {
                state.marked.insert(session.clone(), own);
            }
            let key = row.get(0)?;
            let open = decode(key, row.get_ref(6)?.as_str()?);
            Ok((Self { key, trimmed: Unsigned::get(row, 2)?, state }, open))
        });
        let Some((mut row, open)) = row.optional()? else { return Ok(None) };
        row.state.open =
            open.ok_or_else(|| corrupt(session, "the attempts of the stream cannot be read"))?;
        Ok(Some(row))
    }

    /// Inserts the row of a new stream.
    pub(super) fn begin(connection: &Connection, session: &SessionId) -> Result<i64, Failure> {
        connection
            .prepare_cached("INSERT INTO streams (session) VALUES (?1)")?
            .execute([session.as_str()])?;
        Ok(connection.last_insert_rowid())
    }

    pub(super) fn save(
        self,
        statements: &mut Statements<'_>,
        session: &SessionId,
    ) -> Result<(), Failure> {
        let StreamState { last_seq, last_attempt, marked, open } = self.state;
        let own = marked.get(session).copied().unwrap_or_default();
        let text = encode_open(session, &open)?;
        statements.save.get()?.execute(params![
            self.key,
            Unsigned(last_seq),
            Unsigned(self.trimmed),
            Unsigned(last_attempt),
            Unsigned(own.version),
            Unsigned(own.seq),
            text,
            Unsigned(own.fencing_token),
        ])?;
        statements.attempts.save(self.key, session, text, open);
        Ok(())
    }
}
