//! Statements: texts in which the schema's name is put in once, when the store is opened.

use std::sync::Arc;

use helix_agents_core::error::{Error, ErrorCode, Result};
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Encode, Postgres, Type};

use crate::error::Failure;

/// The server's clock in milliseconds: now, not when the statement began, which may have waited for another one.
const NOW: &str = "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint";

/// The longest name that the server does not cut off.
const MAX_NAME_BYTES: usize = 63;

/// What the driver's names of prepared statements begin with.
const DRIVERS_NAMES: &str = "sqlx_s_";

/// How a statement is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// Once on each connection, under a name: from then on it is one round trip.
    Named,
    /// Each time anew, and in a transaction of its own, so that a pooler that knows nothing of prepared statements has no
    /// occasion to carry it out on another connection: four round trips.
    Unnamed,
}

impl Prepared {
    /// How they can be prepared through the pooler that this connection leads to.
    ///
    /// One that carries prepared statements from connection to connection gives them names of its own, because those of
    /// its clients are the same; and the server tells which names it was given.
    pub(crate) async fn by_pooler(connection: &mut PgConnection) -> Result<Self, Failure> {
        const NAMES: &str = "SELECT name FROM pg_prepared_statements
            WHERE statement LIKE '%pg_prepared_statements%'";
        let mut transaction = connection.begin().await?;
        let names = sqlx::query_scalar::<_, String>(NAMES).fetch_all(&mut *transaction).await;
        transaction.rollback().await?;
        match names {
            Ok(names) if names.is_empty() => Ok(Self::Unnamed),
            Ok(names) if names.iter().any(|it| it.starts_with(DRIVERS_NAMES)) => Ok(Self::Unnamed),
            Ok(_) => Ok(Self::Named),
            // There is another one of that name already, or there is none any more.
            Err(sqlx::Error::Database(error))
                if matches!(error.code().as_deref(), Some("42P05" | "26000")) =>
            {
                Ok(Self::Unnamed)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The schema that the tables are in, and how statements on them are prepared.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    name: Arc<str>,
    prepared: Prepared,
}

impl Schema {
    /// Refuses names that the server would not take, or not keep.
    pub(crate) fn new(name: &str, prepared: Prepared) -> Result<Self> {
        let message = if name.is_empty() || name.len() > MAX_NAME_BYTES {
            "the name of a schema has 1 to 63 bytes"
        } else if name.chars().any(char::is_control) {
            "the name of a schema has no control characters"
        } else if name.starts_with("pg_") || name == "information_schema" {
            "the schema is the server's own"
        } else {
            return Ok(Self { name: name.into(), prepared });
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

    /// A statement that is the same each time.
    pub(crate) fn sql(&self, text: &str) -> Sql {
        Sql { text: self.text(text).into(), prepared: self.prepared }
    }

    /// The same tables by statements that are prepared in another way.
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

    /// The first row; an error if there is none.
    pub(crate) async fn fetch_one(self, connection: &mut PgConnection) -> sqlx::Result<PgRow> {
        self.fetch_optional(connection).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// The first row, if there is one.
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

/// As the database keeps it. What is too large for that is in no row.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
