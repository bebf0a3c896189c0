//! One commit of an append's bytes with the database's own client: one row and nothing else.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use helix_agents::store_sqlite::Synchronous;
use redis::aio::MultiplexedConnection;
use rusqlite::Connection;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::log::BODY;
use crate::measure::place::{Location, Place};

/// A separate table in the same database or in an equivalent one.
pub(super) enum Commit {
    Sqlite(Connection),
    Postgres { connection: PgConnection, insert: Arc<str> },
    Redis { connection: MultiplexedConnection, key: String },
}

impl Commit {
    /// Opens a connection. Returns `None` for a store that does not commit anything.
    pub(super) async fn on(place: &Place, folder: &Path) -> Result<Option<Self>> {
        Ok(Some(match &place.location {
            Location::Nowhere => return Ok(None),
            Location::File { level, .. } => Self::sqlite(*level, folder)?,
            Location::Postgres(location) => {
                let mut connection = location.connect().await?;
                let create = "CREATE TABLE {s}.bare (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea)";
                sqlx::query(AssertSqlSafe(location.sql(create))).execute(&mut connection).await?;
                let insert = location.sql("INSERT INTO {s}.bare (body) VALUES ($1)").into();
                Self::Postgres { connection, insert }
            }
            Location::Redis(location) => {
                let key = format!("{}:bare", location.prefix);
                Self::Redis { connection: location.connect().await?, key }
            }
        }))
    }

    /// Opens another file with the same durability. The store's own file would be locked.
    fn sqlite(level: Synchronous, folder: &Path) -> Result<Self> {
        let level = match level {
            Synchronous::Full => "FULL",
            _ => "NORMAL",
        };
        let connection = Connection::open(folder.join("bare.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", level)?;
        connection.execute_batch("CREATE TABLE bare (key INTEGER PRIMARY KEY, body BLOB)")?;
        Ok(Self::Sqlite(connection))
    }

    pub(super) async fn once(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut insert =
                    connection.prepare_cached("INSERT INTO bare (body) VALUES (?1)")?;
                insert.execute([&BODY[..]])?;
            }
            Self::Postgres { connection, insert } => {
                let insert = sqlx::query(AssertSqlSafe(Arc::clone(insert))).bind(&BODY[..]);
                insert.execute(connection).await.context("a bare insert failed")?;
            }
            Self::Redis { connection, key } => {
                let add = redis::cmd("XADD").arg(&*key).arg("*").arg("b").arg(&BODY[..]).to_owned();
                add.query_async::<String>(connection).await.context("a bare XADD failed")?;
            }
        }
        Ok(())
    }
}
