//! Statements: texts in which the schema's name is put in once, when the store is opened.

use std::sync::Arc;

use helix_agents_core::error::{Error, ErrorCode, Result};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres};

/// The server's clock in milliseconds: now, not when the statement began, which may have waited for another one.
const NOW: &str = "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint";

/// The longest name that the server does not cut off.
const MAX_NAME_BYTES: usize = 63;

/// The schema that the tables are in.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    name: Arc<str>,
}

impl Schema {
    /// Refuses names that the server would not take, or not keep.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let message = if name.is_empty() || name.len() > MAX_NAME_BYTES {
            "the name of a schema has 1 to 63 bytes"
        } else if name.chars().any(char::is_control) {
            "the name of a schema has no control characters"
        } else if name.starts_with("pg_") || name == "information_schema" {
            "the schema is the server's own"
        } else {
            return Ok(Self { name: name.into() });
        };
        Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("schema", name))
    }

    /// Also the channel on which readers are woken.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `{s}` becomes the schema, `{now}` the server's clock.
    pub(crate) fn text(&self, text: &str) -> String {
        let quoted = format!("\"{}\"", self.name.replace('"', "\"\""));
        text.replace("{now}", NOW).replace("{s}", &quoted)
    }

    pub(crate) fn sql(&self, text: &str) -> Sql {
        Sql(self.text(text).into())
    }
}

/// A statement that connections keep prepared.
#[derive(Debug, Clone)]
pub(crate) struct Sql(Arc<str>);

impl Sql {
    pub(crate) fn query<'q>(&self) -> Query<'q, Postgres, PgArguments> {
        sqlx::query(AssertSqlSafe(Arc::clone(&self.0)))
    }
}

/// As the database keeps it. What is too large for that is in no row.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
