//! Statement texts. The schema's name is inserted once, when the store opens.

use std::sync::Arc;

use helix_agents_core::error::{Error, ErrorCode, Result};
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Encode, Postgres, Type};

use crate::error::Failure;

/// The server's clock in milliseconds. It reads the current time, not the start of the statement,
/// because the statement may have waited for a lock.
const NOW: &str = "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint";

/// The maximum length of a name. The server truncates longer ones.
const MAX_NAME_BYTES: usize = 63;

/// The prefix of the driver's prepared statement names.
const DRIVERS_NAMES: &str = "sqlx_s_";

/// The way in which statements are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// Once per connection, under a name. Each further execution takes one round trip.
    Named,
    /// Anew for each execution, in a transaction of its own, so that a pooler without support for
    /// prepared statements cannot execute it on another connection. This takes four round trips.
    Unnamed,
}

impl Prepared {
    /// Detects how statements can be prepared through the pooler of this connection.
    ///
    /// A pooler that supports prepared statements across connections renames them, because its
    /// clients use the same names. The server reports the names that it received.
    pub(crate) async fn by_pooler(connection: &mut PgConnection) -> Result<Self, Failure> {
        const NAMES: &str = "SELECT name FROM pg_prepared_statements
            WHERE statement LIKE '%pg_prepared_statements%'";
        let mut transaction = connection.begin().await?;
        let names = sqlx::query_scalar::<_, String>(NAMES).fetch_all(&mut *transaction).await;
        transaction.rollback().await?;
        match names {
            Ok(names) if names.is_empty() => Ok(Self::Unnamed),
            Ok(names) if names.iter().any(|name| name.starts_with(DRIVERS_NAMES)) => {
                Ok(Self::Unnamed)
            }
            Ok(_) => Ok(Self::Named),
            // Another client has already used the name, or the statement no longer exists.
            Err(sqlx::Error::Database(error))
                if matches!(error.code().as_deref(), Some("42P05" | "26000")) =>
            {
                Ok(Self::Unnamed)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The schema of the tables and the way in which statements on them are prepared.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    name: Arc<str>,
    prepared: Prepared,
}

impl Schema {
    /// Rejects names that the server would reject or truncate.
    pub(crate) fn new(name: &str, prepared: Prepared) -> Result<Self> {
        let message = if name.is_empty() || name.len() > MAX_NAME_BYTES {
            "a schema name must have 1 to 63 bytes"
        } else if name.chars().any(char::is_control) {
            "a schema name must not contain control characters"
        } else if name.starts_with("pg_") || name == "information_schema" {
            "the schema name is reserved by the server"
        } else {
            return Ok(Self { name: name.into(), prepared });
        };
        Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("schema", name))
    }

    /// Returns the schema's name. It is also the name of the notification channel.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Replaces `{s}` with the quoted schema and `{now}` with the server's clock.
    pub(crate) fn text(&self, text: &str) -> String {
        let quoted = format!("\"{}\"", self.name.replace('"', "\"\""));
        text.replace("{now}", NOW).replace("{s}", &quoted)
    }

    /// Creates a statement with a constant text.
    pub(crate) fn sql(&self, text: &str) -> Sql {
        Sql { text: self.text(text).into(), prepared: self.prepared }
    }

    /// Returns the same schema with another way of preparing statements.
    pub(crate) fn prepared(self, prepared: Prepared) -> Self {
        Self { prepared, ..self }
    }
}

/// A statement.
#[derive(Debug, Clone)]
pub(crate) struct Sql {
    text: Arc<str>,
    prepared: Prepared,
}

impl Sql {
    pub(crate) fn query(&self) -> Query {
        self.query_with(PgArguments::default())
    }

    pub(crate) fn query_with(&self, arguments: PgArguments) -> Query {
        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(&self.text)), arguments);
        Query { query, prepared: self.prepared }
    }
}

/// A statement with its arguments.
pub(crate) struct Query {
    query: sqlx::query::Query<'static, Postgres, PgArguments>,
    prepared: Prepared,
}

impl Query {
    pub(crate) fn bind<'v>(mut self, value: impl Encode<'v, Postgres> + Type<Postgres>) -> Self {
        self.query = self.query.bind(value);
        self
    }

    pub(crate) async fn execute(self, connection: &mut PgConnection) -> sqlx::Result<()> {
        self.fetch_all(connection).await.map(drop)
    }

    /// Returns the first row. Returns an error if there is none.
    pub(crate) async fn fetch_one(self, connection: &mut PgConnection) -> sqlx::Result<PgRow> {
        self.fetch_optional(connection).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// Returns the first row, if there is one.
    pub(crate) async fn fetch_optional(
        self,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Option<PgRow>> {
        Ok(self.fetch_all(connection).await?.into_iter().next())
    }

    pub(crate) async fn fetch_all(self, connection: &mut PgConnection) -> sqlx::Result<Vec<PgRow>> {
        match self.prepared {
            Prepared::Named => self.query.fetch_all(connection).await,
            Prepared::Unnamed => {
                let mut transaction = connection.begin().await?;
                let rows = self.query.persistent(false).fetch_all(&mut *transaction).await?;
                transaction.commit().await?;
                Ok(rows)
            }
        }
    }
}

/// Converts a number to the database's type. No row contains a number that is too large.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
