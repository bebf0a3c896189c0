//! The stores of measurements, each with its own data that is removed afterwards.

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
    pub(super) opener: Opener,
    pub(super) location: Location,
}

/// The store's two contracts, as a runtime uses them.
#[derive(Clone)]
pub(super) struct Handles {
    pub(super) state: Arc<dyn StateStore>,
    pub(super) streams: Arc<dyn StreamManager>,
}

/// The options that open the store.
#[derive(Clone)]
pub(super) enum Opener {
    Memory(MemoryStore),
    Sqlite(SqliteBuilder),
    Postgres(PostgresBuilder),
    Redis(RedisBuilder),
}

/// The location of the store's data, for direct access.
pub(super) enum Location {
    Nowhere,
    File { path: PathBuf, level: Synchronous },
    Postgres(PostgresLocation),
    Redis(RedisLocation),
}

/// The location of a store's tables.
#[derive(Clone)]
pub(super) struct PostgresLocation {
    pub(super) url: String,
    pub(super) schema: String,
}

/// The location of a store's keys.
#[derive(Clone)]
pub(super) struct RedisLocation {
    pub(super) prefix: String,
    /// The previous value of `appendfsync`, if it was changed.
    fsync_before: Option<String>,
}

impl Place {
    /// Opens an empty store. A file store uses the folder.
    pub(super) async fn open(store: Store, folder: &Path) -> Result<Self> {
        let (opener, location) = match store {
            Store::Memory => (Opener::Memory(MemoryStore::new()), Location::Nowhere),
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
        Ok(Self { handles: opener.open().await?, opener, location })
    }

    /// Closes the store and removes its data from a server.
    pub(super) async fn remove(self) -> Result<()> {
        let Self { handles, opener, location } = self;
        drop(handles);
        match opener {
            Opener::Memory(_) | Opener::Sqlite(_) => {}
            Opener::Postgres(builder) => builder.destroy().await?,
            Opener::Redis(builder) => builder.destroy().await?,
        }
        if let Location::Redis(location) = location
            && let Some(fsync) = &location.fsync_before
        {
            set_fsync(&mut location.connect().await?, fsync).await?;
        }
        Ok(())
    }
}

impl Opener {
    /// Opens another handle that shares no memory with others, like another process. The memory
    /// store has only one handle.
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

impl PostgresLocation {
    /// Opens a connection with the database driver.
    pub(super) async fn connect(&self) -> Result<PgConnection> {
        PgConnection::connect(&self.url).await.context("no connection to PostgreSQL")
    }

    /// Inserts the schema's name into a statement.
    pub(super) fn sql(&self, text: &str) -> String {
        text.replace("{s}", &format!("\"{}\"", self.schema))
    }
}

impl RedisLocation {
    /// Opens a connection with the database driver.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection> {
        let client = redis::Client::open(servers::redis())?;
        client.get_multiplexed_async_connection().await.context("no connection to Redis")
    }
}

fn sqlite(folder: &Path, level: Synchronous) -> (Opener, Location) {
    let path = folder.join("bench.db");
    let builder = SqliteStore::builder(&path).synchronous(level);
    (Opener::Sqlite(builder), Location::File { path, level })
}

fn postgres(url: String) -> (Opener, Location) {
    let location = PostgresLocation { url, schema: servers::unique() };
    let builder = PostgresStore::builder(&location.url).schema(&location.schema);
    (Opener::Postgres(builder), Location::Postgres(location))
}

/// Opens a Redis store. The server's `appendfsync` setting is changed for the duration of the
/// measurement.
async fn redis(fsync: Option<&str>) -> Result<(Opener, Location)> {
    let mut location = RedisLocation { prefix: servers::unique(), fsync_before: None };
    if let Some(fsync) = fsync {
        let mut connection = location.connect().await?;
        let before: (String, String) =
            redis::cmd("CONFIG").arg(&["GET", "appendfsync"]).query_async(&mut connection).await?;
        set_fsync(&mut connection, fsync).await?;
        location.fsync_before = Some(before.1);
    }
    let builder = RedisStore::builder(&servers::redis()).prefix(&location.prefix);
    Ok((Opener::Redis(builder), Location::Redis(location)))
}

async fn set_fsync(connection: &mut MultiplexedConnection, fsync: &str) -> Result<()> {
    let set = ["SET", "appendfsync", fsync];
    redis::cmd("CONFIG").arg(&set).query_async::<()>(connection).await?;
    Ok(())
}
