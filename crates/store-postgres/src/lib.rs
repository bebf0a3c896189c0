//! Sessions and streams in PostgreSQL.
//!
//! The store for several machines: whoever reaches the server can go on with any session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::postgres::PgPool;

use helix_agents_core::error::Result;
use helix_agents_core::stream::{CacheEntry, StreamCache};

mod config;
mod connections;
mod detached;
mod error;
mod groups;
mod guarantees;
mod inspect;
mod migrations;
mod purge;
mod sql;
mod state;
mod streams;

pub use config::{DEFAULT_SCHEMA, PostgresBuilder};
pub use inspect::Inspection;

use config::Config;
use connections::{Connections, drive};
use groups::Groups;
use guarantees::Settings;
use sql::Prepared;
use streams::notify::Notifier;
use streams::watch::Watch;

/// A [`StateStore`] and [`StreamManager`] in a schema of a PostgreSQL database. Clones are handles of the same
/// connections; what any number of processes on any machine do with one schema fits together.
///
/// An append is one statement, one round trip and one commit, which appends that come at the same time share. Connections are opened as they are needed, up to a limit,
/// and replaced if they are lost; operations on which a connection was lost are repeated, as their ids make safe.
///
/// # Durability
///
/// An acknowledged append was committed by the server, and survives what its settings make commits survive
/// (`fsync`, `synchronous_commit`, replication); the store looks at them when it is opened, and
/// [`guarantees`](helix_agents_core::store::StateStore::guarantees) says what they mean. Streams are committed without waiting for the disk: they
/// may lose their last moments with the server.
///
/// # Cancel safety
///
/// Dropping a future leaves open whether the operation took place.
///
/// [`StateStore`]: helix_agents_core::store::StateStore
/// [`StreamManager`]: helix_agents_core::stream::StreamManager
#[derive(Debug, Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connections: Arc<Connections>,
    state: state::Statements,
    appends: state::append::Appends,
    streams: streams::Statements,
    writes: streams::write::Writes,
    purge: purge::Statements,
    settings: Settings,
    /// What the writers of each stream know of it.
    memories: StreamCache<tokio::sync::Mutex<CacheEntry>>,
    watch: Arc<Watch>,
    notifier: Notifier,
    stream_retention: u64,
}

impl PostgresStore {
    /// Opens the schema [`DEFAULT_SCHEMA`] of the database at a URL with the default options; makes it if there is
    /// none.
    ///
    /// # Errors
    /// As [`PostgresBuilder::open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::builder(url).open().await
    }

    /// Options for opening the database at a URL, such as `postgres://user:password@host:5432/database`.
    pub fn builder(url: &str) -> PostgresBuilder {
        PostgresBuilder::of_url(url)
    }

    /// Options for working on the connections of a pool. It is the user's: its limits, timeouts and hooks hold, and
    /// closing the store leaves it open. The driver's pool asks the server once more each time a connection is given
    /// back, so a store with connections of its own takes more appends a second.
    pub fn with_pool(pool: PgPool) -> PostgresBuilder {
        PostgresBuilder::of_pool(pool)
    }

    /// Closes the store for all handles: what is asked for later fails with
    /// [`Closed`](helix_agents_core::error::ErrorCode::Closed), and readers of streams end with that error.
    ///
    /// Dropping all handles closes the connections as well.
    pub async fn close(&self) {
        let inner = &self.inner;
        inner.watch.close();
        inner.notifier.finish(&inner.connections).await;
        inner.connections.close().await;
    }

    async fn start(config: &Config) -> Result<Self> {
        let schema = config.schema()?;
        let connections = Arc::new(config.connect()?);
        let server = drive!(connections, |connection| inspect::server(connection))?;
        if config.migrates() {
            migrations::run(&connections, &schema).await?;
        } else {
            migrations::check(&connections, &schema).await?;
        }
        let prepared = if config.is_behind_pooler() {
            drive!(connections, |connection| Prepared::by_pooler(connection))?
        } else {
            Prepared::Named
        };
        let schema = schema.prepared(prepared);
        let inner = Inner {
            state: state::Statements::new(&schema),
            appends: Groups::default(),
            streams: streams::Statements::new(&schema),
            writes: Groups::default(),
            purge: purge::Statements::new(&schema),
            settings: server.settings,
            memories: StreamCache::default(),
            watch: Arc::new(Watch::new(config, &schema, Arc::clone(&connections))),
            notifier: Notifier::new(&schema),
            stream_retention: config.stream_retention.max(1),
            connections,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.watch.close();
        self.notifier.close();
    }
}

/// The guard of a lock whose data is whole even if a holder panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
