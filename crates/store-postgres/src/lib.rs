//! Sessions and streams in PostgreSQL.
//!
//! Use this store for several machines. Every process that can reach the server can continue any
//! session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::postgres::PgPool;

use helix_agents_core::error::Result;
use helix_agents_core::stream::{CacheEntry, StreamCache};

mod builder;
mod config;
mod connections;
mod detached;
mod diagnosis;
mod error;
mod groups;
mod guarantees;
mod inspect;
mod migrations;
mod purge;
mod sql;
mod state;
mod streams;

pub use builder::PostgresBuilder;
pub use config::DEFAULT_SCHEMA;
pub use diagnosis::Diagnosis;
pub use inspect::Inspection;

use config::Config;
use connections::{Connections, drive};
use groups::Groups;
use guarantees::Settings;
use sql::Prepared;
use streams::notify::Notifier;
use streams::watch::Watch;

/// A [`StateStore`] and [`StreamManager`] in a schema of a PostgreSQL database. Clones are handles
/// to the same connections. Any number of processes on any machine can use one schema concurrently.
///
/// An append is one statement, one round trip and one commit. Concurrent appends of different
/// sessions are combined into one. Connections are opened on demand, up to a limit, and replaced if
/// they are lost. If a connection was lost while it was idle, the operation that finds this out is
/// repeated on another one. This is safe, because the store recognises repeated appends and batches
/// by their ids.
///
/// # Durability
///
/// The server has committed every acknowledged append. The failures that a commit survives depend
/// on the server's settings (`fsync`, `synchronous_commit`, replication). The store reads these
/// settings when it opens, and [`guarantees`](helix_agents_core::store::StateStore::guarantees)
/// reports what they imply. Streams are committed without waiting for the disk, so a crash of the
/// server may lose their last chunks.
///
/// # Cancel safety
///
/// If a future is dropped, it is unknown whether the operation took place.
///
/// # Examples
///
/// ```no_run
/// use helix_agents_core::store::{SessionFilter, list_all};
/// use helix_agents_store_postgres::PostgresStore;
///
/// # async fn example() -> helix_agents_core::error::Result<()> {
/// let store = PostgresStore::builder("postgres://clerk@db.example.com/sales")
///     .schema("agents")
///     .connections(8)
///     .open()
///     .await?;
/// for head in list_all(&store, &SessionFilter::default()).await? {
///     println!("{}: {:?}", head.session, head.summary.status);
/// }
/// store.close().await;
/// # Ok(())
/// # }
/// ```
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
    /// The cached state of each stream that this process writes to.
    stream_cache: StreamCache<tokio::sync::Mutex<CacheEntry>>,
    watch: Arc<Watch>,
    notifier: Notifier,
    stream_retention: u64,
}

impl PostgresStore {
    /// Opens the schema [`DEFAULT_SCHEMA`] of the database at `url` with the default options.
    /// Creates the schema if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`PostgresBuilder::open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::builder(url).open().await
    }

    /// Returns a builder for the database at a URL, such as
    /// `postgres://user:password@host:5432/database`.
    pub fn builder(url: &str) -> PostgresBuilder {
        PostgresBuilder::of_url(url)
    }

    /// Returns a builder for a store that uses the connections of an existing pool. The pool's own
    /// limits, timeouts and hooks apply, and closing the store leaves the pool open. The driver's
    /// pool sends a query each time a connection is returned, so a store with its own connections
    /// achieves more appends per second.
    pub fn with_pool(pool: PgPool) -> PostgresBuilder {
        PostgresBuilder::of_pool(pool)
    }

    /// Closes the store for all handles. Later operations fail with
    /// [`Closed`](helix_agents_core::error::ErrorCode::Closed), and so do the readers of streams.
    /// Operations in progress are not awaited, and may still take effect. A supplied pool stays
    /// open.
    ///
    /// Dropping all handles also closes the connections.
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
            stream_cache: StreamCache::default(),
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

/// Locks a mutex and ignores poison, because its data is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
