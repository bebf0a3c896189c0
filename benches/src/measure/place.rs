//! Stores, each in a corner of its own that goes with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use helix_agents::prelude::*;
use helix_agents::store_postgres::PostgresBuilder;
use helix_agents::store_redis::RedisBuilder;
use helix_agents::store_sqlite::{SqliteBuilder, Synchronous};
use helix_agents_testkit::servers;
use redis::aio::MultiplexedConnection;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::job::Store;

/// A store that was opened for one measurement.
pub(super) struct Place {
    pub(super) handles: Handles,
    pub(super) way: Way,
    pub(super) corner: Corner,
}

/// A store as a runtime has it.
#[derive(Clone)]
pub(super) struct Handles {
    pub(super) state: Arc<dyn StateStore>,
    pub(super) streams: Arc<dyn StreamManager>,
}

/// How the store is opened.
#[derive(Clone)]
pub(super) enum Way {
    Memory(MemoryStore),
    Sqlite(SqliteBuilder),
    Postgres(PostgresBuilder),
    Redis(RedisBuilder),
}

/// Where a store keeps its data, for those who look at it from outside.
pub(super) enum Corner {
    Nowhere,
    File { path: PathBuf, level: Synchronous },
    Postgres(PostgresCorner),
    Redis(RedisCorner),
}

/// Where a store's tables are.
#[derive(Clone)]
pub(super) struct PostgresCorner {
    pub(super) url: String,
    pub(super) schema: String,
}

/// Where a store's keys are.
#[derive(Clone)]
pub(super) struct RedisCorner {
    pub(super) prefix: String,
    /// What `appendfsync` was before.
    fsync_before: Option<String>,
}

impl Place {
    /// Opens an empty store; a file of its in the folder.
    pub(super) async fn open(store: Store, folder: &Path) -> Result<Self> {
        let (way, corner) = match store {
            Store::Memory => (Way::Memory(MemoryStore::new()), Corner::Nowhere),
            Store::Sqlite => sqlite(folder, Synchronous::Full),
            Store::SqliteNormal => sqlite(folder, Synchronous::Normal),
            Store::Postgres => postgres(servers::postgres()),
            Store::PostgresAsync => {
                let url = servers::postgres();
                let sign = if url.contains('?') { '&' } else { '?' };
                postgres(format!("{url}{sign}options[synchronous_commit]=off"))
            }
            Store::Redis => redis(None).await?,
            Store::RedisEverysec => redis(Some("everysec")).await?,
        };
        Ok(Self { handles: way.open().await?, way, corner })
    }

    /// Closes the store and removes what it kept on a server.
    pub(super) async fn remove(self) -> Result<()> {
        let Self { handles, way, corner } = self;
        drop(handles);
        match way {
            Way::Memory(_) | Way::Sqlite(_) => {}
            Way::Postgres(builder) => builder.destroy().await?,
            Way::Redis(builder) => builder.destroy().await?,
        }
        if let Corner::Redis(corner) = corner
            && let Some(fsync) = &corner.fsync_before
        {
            set_fsync(&mut corner.connect().await?, fsync).await?;
        }
        Ok(())
    }
}

impl Way {
    /// Handles that share with others what those of another process would, and no more; but there is only one memory.
    pub(super) async fn open(&self) -> Result<Handles> {
        Ok(match self {
            Self::Memory(store) => Handles::of(store),
            Self::Sqlite(builder) => Handles::of(&builder.clone().open().await?),
            Self::Postgres(builder) => Handles::of(&builder.clone().open().await?),
            Self::Redis(builder) => Handles::of(&builder.clone().open().await?),
        })
    }
}

impl Handles {
    fn of<S: StateStore + StreamManager + Clone>(store: &S) -> Self {
        Self { state: Arc::new(store.clone()), streams: Arc::new(store.clone()) }
    }
}

impl PostgresCorner {
    /// A connection of the driver's.
    pub(super) async fn connect(&self) -> Result<PgConnection> {
        PgConnection::connect(&self.url).await.context("no connection to PostgreSQL")
    }

    /// Puts the schema's name, and nothing else, into a statement.
    pub(super) fn sql(&self, text: &str) -> String {
        text.replace("{s}", &format!("\"{}\"", self.schema))
    }
}

impl RedisCorner {
    /// A connection of the driver's.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection> {
        let client = redis::Client::open(servers::redis())?;
        client.get_multiplexed_async_connection().await.context("no connection to Redis")
    }
}

fn sqlite(folder: &Path, level: Synchronous) -> (Way, Corner) {
    let path = folder.join("bench.db");
    let builder = SqliteStore::builder(&path).synchronous(level);
    (Way::Sqlite(builder), Corner::File { path, level })
}

fn postgres(url: String) -> (Way, Corner) {
    let corner = PostgresCorner { url, schema: servers::unique() };
    let builder = PostgresStore::builder(&corner.url).schema(&corner.schema);
    (Way::Postgres(builder), Corner::Postgres(corner))
}

/// The server is asked to be less durable as long as this is measured.
async fn redis(fsync: Option<&str>) -> Result<(Way, Corner)> {
    let mut corner = RedisCorner { prefix: servers::unique(), fsync_before: None };
    if let Some(fsync) = fsync {
        let mut connection = corner.connect().await?;
        let before: (String, String) =
            redis::cmd("CONFIG").arg(&["GET", "appendfsync"]).query_async(&mut connection).await?;
        set_fsync(&mut connection, fsync).await?;
        corner.fsync_before = Some(before.1);
    }
    let builder = RedisStore::builder(&servers::redis()).prefix(&corner.prefix);
    Ok((Way::Redis(builder), Corner::Redis(corner)))
}

async fn set_fsync(connection: &mut MultiplexedConnection, fsync: &str) -> Result<()> {
    let set = ["SET", "appendfsync", fsync];
    redis::cmd("CONFIG").arg(&set).query_async::<()>(connection).await?;
    Ok(())
}
