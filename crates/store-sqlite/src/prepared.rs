//! The writing connection and its prepared statements.

use rusqlite::{Connection, PrepFlags, Result, Statement};

use crate::state::write::Statements as StateStatements;
use crate::streams::row::Statements as StreamStatements;

/// The writing connection within a transaction, and the statements that every step needs.
/// Statements of rare operations are in the connection's own cache, which has a more expensive
/// lookup.
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

/// A statement that is prepared on first use and then kept.
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
