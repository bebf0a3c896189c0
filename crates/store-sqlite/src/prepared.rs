//! The connection that writes, and the statements that it keeps prepared.

use rusqlite::{Connection, PrepFlags, Result, Statement};

use crate::state::write::Statements as StateStatements;
use crate::streams::row::Statements as StreamStatements;

/// What writes within a transaction: the connection, and beside it the statements of every step.
/// Those of rare operations are in the connection's own cache, whose look-up costs more.
pub(crate) struct Tables<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) state: StateStatements<'c>,
    pub(crate) streams: StreamStatements<'c>,
}

impl<'c> Tables<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            state: StateStatements::new(connection),
            streams: StreamStatements::new(connection),
        }
    }
}

/// A statement that is prepared when it is first used, and kept.
pub(crate) struct Prepared<'c> {
    connection: &'c Connection,
    sql: &'static str,
    statement: Option<Statement<'c>>,
}

impl<'c> Prepared<'c> {
    pub(crate) fn new(connection: &'c Connection, sql: &'static str) -> Self {
        Self { connection, sql, statement: None }
    }

    pub(crate) fn get(&mut self) -> Result<&mut Statement<'c>> {
        match &mut self.statement {
            Some(statement) => Ok(statement),
            none => {
                let flags = PrepFlags::SQLITE_PREPARE_PERSISTENT;
                Ok(none.insert(self.connection.prepare_with_flags(self.sql, flags)?))
            }
        }
    }
}
