//! A builder that opens, migrates and inspects a database.

use std::time::Duration;

use sqlx::postgres::PgPool;

use helix_agents_core::error::{Error, Result};

use crate::config::Config;
use crate::{Inspection, PostgresStore, inspect, migrations};

/// Options for opening a [`PostgresStore`].
#[derive(Debug, Clone)]
#[must_use]
pub struct PostgresBuilder {
    pub(crate) config: Config,
}

impl PostgresBuilder {
    pub(crate) fn of_url(url: &str) -> Self {
        Self { config: Config::of_url(url) }
    }

    pub(crate) fn of_pool(pool: PgPool) -> Self {
        Self { config: Config::of_pool(pool) }
    }

    /// Sets the database schema of the store's tables. Defaults to the `?schema=name` parameter of
    /// the URL, or to [`DEFAULT_SCHEMA`](crate::DEFAULT_SCHEMA). Stores in different schemas are independent of each
    /// other.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.config.schema = schema.into();
        self
    }

    /// Sets the maximum number of connections that the store opens, at least one. The connection
    /// for `LISTEN` does not count. Defaults to 16. A pool that the caller supplies has its own
    /// limit.
    pub fn connections(mut self, most: usize) -> Self {
        self.config.connections = most;
        self
    }

    /// Sets how long an operation waits for a free connection before it fails with [`StoreBusy`],
    /// and how long it then waits until a new connection is established before it fails with
    /// [`StoreUnavailable`]. Defaults to ten seconds each.
    ///
    /// [`StoreBusy`]: helix_agents_core::error::ErrorCode::StoreBusy
    /// [`StoreUnavailable`]: helix_agents_core::error::ErrorCode::StoreUnavailable
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.connection = timeout;
        self
    }

    /// Sets how long one operation may take before it fails with [`StoreUnavailable`]. The server
    /// cancels the statement at that time, too, except on a connection of a supplied pool or behind
    /// a transaction pooler. Defaults to 30 seconds.
    ///
    /// [`StoreUnavailable`]: helix_agents_core::error::ErrorCode::StoreUnavailable
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.operation = timeout;
        self
    }

    /// Sets the approximate number of chunks that are kept per stream. Older chunks are trimmed periodically. Zero is
    /// treated as one. Defaults to 100,000.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.config.stream_retention = chunks;
        self
    }

    /// Sets the interval at which the store polls for chunks of other processes while a stream has
    /// readers. Readers see chunks of this process immediately, and chunks of other processes when
    /// the server sends a notification. Polling finds chunks whose notification was lost. Defaults
    /// to one second, or 100 ms [behind a pooler](Self::behind_transaction_pooler).
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.config.poll_interval = Some(interval);
        self
    }

    /// Sets whether the URL points to a pooler that lends out a connection per transaction, such as
    /// PgBouncer in transaction mode. Defaults to `false`, or to `true` with `?pooler=transaction`
    /// in the URL. It must be set behind such a pooler, because otherwise the server could execute
    /// another client's prepared statement instead of the store's.
    ///
    /// Behind a pooler, the store leaves no settings on connections. It does not use `LISTEN`,
    /// which such a pooler does not support, so the readers of streams poll. When the store opens,
    /// it detects whether the pooler supports prepared statements across connections (PgBouncer
    /// since 1.21, if `max_prepared_statements` is not 0). Otherwise it prepares each statement
    /// again for every execution, in a transaction of its own, which takes four round trips instead
    /// of one.
    pub fn behind_transaction_pooler(mut self, behind: bool) -> Self {
        self.config.behind_pooler = behind;
        self
    }

    /// Sets whether opening creates the tables and migrates older ones. Defaults to `true`. With
    /// `false`, opening needs no `CREATE` privilege, but fails unless the tables have been migrated
    /// with `helix migrate` or [`migrate`](Self::migrate).
    pub fn migrate_on_open(mut self, migrate: bool) -> Self {
        self.config.migrate = migrate;
        self
    }

    /// Returns the approximate number of chunks that are kept per stream.
    pub fn kept_chunks(&self) -> u64 {
        self.config.stream_retention.max(1)
    }

    /// Opens the store.
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`] for an invalid URL, user, password or database; [`StoreUnavailable`] if the server is
    /// unreachable; [`StoreForeign`] if the schema contains tables of another program; [`StoreNewer`] if a newer
    /// version wrote it; [`StoreOlder`] if the tables need a migration and [`migrate_on_open`](Self::migrate_on_open)
    /// is off; [`StoreReadOnly`] if the server is a standby or the user lacks write privileges; [`Unsupported`] if the
    /// server is too old.
    ///
    /// [`ConfigInvalid`]: helix_agents_core::error::ErrorCode::ConfigInvalid
    /// [`StoreForeign`]: helix_agents_core::error::ErrorCode::StoreForeign
    /// [`StoreNewer`]: helix_agents_core::error::ErrorCode::StoreNewer
    /// [`StoreOlder`]: helix_agents_core::error::ErrorCode::StoreOlder
    /// [`StoreReadOnly`]: helix_agents_core::error::ErrorCode::StoreReadOnly
    /// [`StoreUnavailable`]: helix_agents_core::error::ErrorCode::StoreUnavailable
    /// [`Unsupported`]: helix_agents_core::error::ErrorCode::Unsupported
    pub async fn open(self) -> Result<PostgresStore> {
        let result = PostgresStore::start(&self.config).await;
        result.map_err(|error| error.with_operation("store::open"))
    }

    /// Creates the tables or migrates older ones. Returns the schema version before and after.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open).
    pub async fn migrate(self) -> Result<(u32, u32)> {
        let migrate = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            let before = migrations::run(&connections, &schema).await?;
            connections.close().await;
            Ok((before, migrations::newest()))
        };
        migrate().await.map_err(|error: Error| error.with_operation("store::migrate"))
    }

    /// Inspects the database without changing it. Returns `None` if the schema does not exist or is
    /// empty.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open) for a database that `open` would refuse.
    pub async fn inspect(&self) -> Result<Option<Inspection>> {
        let inspect = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            let inspection = inspect::inspect(&connections, &schema).await?;
            connections.close().await;
            Ok(inspection)
        };
        inspect().await.map_err(|error: Error| error.with_operation("store::inspect"))
    }

    /// Drops the schema with everything in it, if it belongs to a store. Meant for tests.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open).
    pub async fn destroy(self) -> Result<()> {
        let destroy = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            migrations::destroy(&connections, &schema).await?;
            connections.close().await;
            Ok(())
        };
        destroy().await.map_err(|error: Error| error.with_operation("store::destroy"))
    }
}
