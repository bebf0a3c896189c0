//! A builder that connects to a server and inspects it.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::stream::StreamCache;

use crate::config::Config;
use crate::connection::Server;
use crate::location::Location;
use crate::settings::SCHEMA;
use crate::streams::watch::Watch;
use crate::{Inner, Inspection, RedisStore, inspect, settings};

/// Options for opening a [`RedisStore`].
#[derive(Debug, Clone)]
#[must_use]
pub struct RedisBuilder {
    config: Config,
}

impl RedisBuilder {
    pub(crate) fn new(url: &str) -> Self {
        Self { config: Config::new(url) }
    }

    /// Sets the prefix of all keys. Stores with different prefixes are independent of each other. A
    /// prefix consists of letters, digits, `-`, `_`, `.` and `:`. Defaults to the `?prefix=…`
    /// parameter of the URL, or to `helix`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.config.prefix = Some(prefix.into());
        self
    }

    /// Sets how long to wait for a connection, and for each reply of the server, before an
    /// operation fails with [`StoreUnavailable`]. An operation with several round trips may take
    /// longer. Defaults to ten seconds.
    ///
    /// [`StoreUnavailable`]: helix_agents_core::error::ErrorCode::StoreUnavailable
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.config.operation_timeout = timeout;
        self
    }

    /// Sets the approximate number of chunks that are kept per stream. Older chunks are trimmed
    /// periodically. Zero is treated as one. Defaults to 100,000.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.config.streams.retention = chunks.max(1);
        self
    }

    /// Sets how long the chunks of a stream are kept after its last write. Defaults to seven days.
    /// The stream's sequence numbers and watermarks are kept with the session.
    pub fn stream_ttl(mut self, ttl: Duration) -> Self {
        self.config.streams.ttl = ttl.max(Duration::from_secs(1));
        self
    }

    /// Sets the interval at which each reader of a stream polls for chunks whose notification was
    /// lost. Defaults to one second.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.config.streams.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Returns the approximate number of chunks that are kept per stream.
    pub fn kept_chunks(&self) -> u64 {
        self.config.streams.retention
    }

    /// Connects to the server and checks that its settings are safe for the store. Data of an older
    /// version is migrated: each session is read once.
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`] for an invalid URL or prefix, a wrong password, certificates that
    /// the server or the client does not trust, a server that evicts keys, or a server that is too
    /// old; [`StoreReadOnly`] for a replica; [`StoreForeign`] if another program uses this prefix;
    /// [`StoreNewer`] if a newer version wrote under this prefix; [`StoreUnavailable`] if the
    /// server is unreachable.
    ///
    /// [`ConfigInvalid`]: helix_agents_core::error::ErrorCode::ConfigInvalid
    /// [`StoreForeign`]: helix_agents_core::error::ErrorCode::StoreForeign
    /// [`StoreNewer`]: helix_agents_core::error::ErrorCode::StoreNewer
    /// [`StoreReadOnly`]: helix_agents_core::error::ErrorCode::StoreReadOnly
    /// [`StoreUnavailable`]: helix_agents_core::error::ErrorCode::StoreUnavailable
    pub async fn open(self) -> Result<RedisStore> {
        self.connect().await.map_err(|error| error.with_operation("store::open"))
    }

    async fn connect(self) -> Result<RedisStore> {
        let location = Location::parse(&self.config)?;
        let timeout = self.config.operation_timeout;
        let settings = settings::read(&location.client, timeout).await?;
        settings.check()?;
        let server = Server::connect(&location, settings.is_cluster, timeout).await?;
        let Location { keys, client, .. } = location;
        let schema = settings::schema(&server, &keys).await?;
        settings::check_version(schema)?;
        let watch = Arc::new(Watch::new(client, keys.clone(), timeout));
        let streams = self.config.streams;
        let stream_cache = StreamCache::default();
        let inner = Inner { server, keys, settings, streams, stream_cache, watch };
        if schema.is_some_and(|found| found < SCHEMA) {
            inner.migrate().await?;
        }
        Ok(RedisStore { inner: Arc::new(inner) })
    }

    /// Inspects the server and the store's data without changing anything.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open), except that unsuitable server settings and a
    /// newer schema are not errors. They are part of the inspection.
    pub async fn inspect(&self) -> Result<Inspection> {
        let inspected = inspect::inspect(&self.config).await;
        inspected.map_err(|error| error.with_operation("store::inspect"))
    }

    /// Removes every key whose name starts with the prefix and a colon, including those of stores
    /// whose prefixes start so. Meant for tests, and not supported in a cluster.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open).
    #[doc(hidden)]
    pub async fn destroy(self) -> Result<()> {
        let location = Location::parse(&self.config)?;
        let server = Server::connect(&location, false, self.config.operation_timeout).await?;
        server.remove_all(&location.keys.pattern()).await
    }
}
