//! The append statement of the PostgreSQL store, executed without the store. It shows the cost of
//! the driver and the server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use helix_agents::prelude::*;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Row as _};

use super::log::{BODY, LEASE, Log, RUN, RUNTIME};
use crate::measure::place::{Place, PostgresLocation};

/// The text of a statement and the types of its parameters.
pub(super) struct Text {
    pub(super) sql: String,
    pub(super) types: Vec<String>,
}

/// The statement on a connection, with its own session.
pub(super) struct Statement {
    connection: PgConnection,
    sql: Arc<str>,
    version: i64,
}

const SESSION: &str = "statement";

impl Statement {
    pub(super) async fn on(place: &Place, location: &PostgresLocation) -> Result<Self> {
        Log::create(Arc::clone(&place.handles.state), SESSION).await?;
        let sql = Text::of_append(location).await?.sql.into();
        Ok(Self { connection: location.connect().await?, sql, version: 1 })
    }

    pub(super) async fn once(&mut self) -> Result<()> {
        let next = self.version + 1;
        let query = sqlx::query(AssertSqlSafe(Arc::clone(&self.sql)))
            .bind(SESSION)
            .bind(self.version)
            .bind(self.version.to_string())
            .bind(1_i64)
            .bind(next.to_string())
            .bind(RUN)
            .bind(1_i32)
            .bind(&BODY[..])
            .bind(false)
            .bind(lease_ms())
            .bind(None::<i64>)
            .bind(false)
            .bind(None::<&str>)
            .bind("active")
            .bind(RUN)
            .bind(RUNTIME)
            .bind(0_i64)
            .bind(None::<i64>);
        let row = query.fetch_optional(&mut self.connection).await?;
        row.context("the bare statement appended nothing")?;
        self.version = next;
        Ok(())
    }
}

/// Returns the lease that each append takes, in milliseconds.
pub(super) fn lease_ms() -> i64 {
    i64::try_from(Duration::as_millis(&LEASE)).unwrap_or(i64::MAX)
}

impl Text {
    /// Lets the store append on a supplied connection, and reads the prepared statement from the
    /// server.
    pub(super) async fn of_append(location: &PostgresLocation) -> Result<Self> {
        let pool = PgPoolOptions::new().max_connections(1).connect(&location.url).await?;
        let store = PostgresStore::with_pool(pool.clone()).schema(&location.schema).open().await?;
        Log::create(Arc::new(store), "text").await?.append().await?;
        let find = "SELECT statement, parameter_types::text[] FROM pg_prepared_statements
            WHERE statement LIKE '%UPDATE%.sessions%INSERT INTO%.appends%'
                AND statement NOT LIKE '%pg_prepared_statements%'";
        let rows = sqlx::query(find).fetch_all(&mut *pool.acquire().await?).await?;
        ensure!(rows.len() == 1, "{} statements match the append statement", rows.len());
        let row = rows.first().context("no statement matches the append statement")?;
        Ok(Self { sql: row.try_get(0)?, types: row.try_get(1)? })
    }
}
