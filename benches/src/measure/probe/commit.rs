//! One commit of an append's bytes, as one would make it with the database's own client: a row and nothing else.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use helix_agents::store_sqlite::Synchronous;
use redis::aio::MultiplexedConnection;
use rusqlite::Connection;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::log::BODY;
use crate::measure::place::{Corner, Place};

/// A table of its own, in the same database or one like it.
pub(super) enum Commit {
    Sqlite(Connection),
    Postgres { connection: PgConnection, insert: Arc<str> },
    Redis { connection: MultiplexedConnection, key: String },
}

impl Commit {
    /// None where nothing is committed.
    pub(super) async fn on(place: &Place, folder: &Path) -> Result<Option<Self>> {
        Ok(Some(match &place.corner {
            Corner::Nowhere => return Ok(None),
            Corner::File { level, .. } => Self::sqlite(*level, folder)?,
            Corner::Postgres(corner) => {
                let mut connection = corner.connect().await?;
                let create = "CREATE TABLE {s}.bare (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea)";
                sqlx::query(AssertSqlSafe(corner.sql(create))).execute(&mut connection).await?;
                let insert = corner.sql("INSERT INTO {s}.bare (body) VALUES ($1)").into();
                Self::Postgres { connection, insert }
            }
            Corner::Redis(corner) => {
                let key = format!("{}:bare", corner.prefix);
                Self::Redis { connection: corner.connect().await?, key }
            }
        }))
    }

    /// A file beside the store's, because the two would wait for each other, and as durable.
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
