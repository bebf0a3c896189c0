//! Options of the Redis store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::stream::StreamCache;

use crate::connection::Server;
use crate::location::Location;
use crate::streams::watch::Watch;
use crate::{Inner, Inspection, RedisStore, inspect, settings};

/// Options for opening a [`RedisStore`].
#[derive(Clone)]
#[must_use]
pub struct RedisBuilder {
    pub(crate) url: String,
    pub(crate) prefix: String,
    pub(crate) operation_timeout: Duration,
    pub(crate) streams: Streams,
}

/// The options of streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) retention: u64,
    pub(crate) ttl: Duration,
    pub(crate) poll_interval: Duration,
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for RedisBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBuilder")
            .field("prefix", &self.prefix)
            .field("operation_timeout", &self.operation_timeout)
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

impl RedisBuilder {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: "helix".to_owned(),
            operation_timeout: Duration::from_secs(10),
            streams: Streams {
                retention: 100_000,
                ttl: Duration::from_secs(7 * 24 * 60 * 60),
                poll_interval: Duration::from_secs(1),
            },
        }
    }

    /// Sets the prefix of all keys. Stores with different prefixes are independent of each other. A
    /// prefix consists of letters, digits, `-`, `_`, `.` and `:`. Defaults to `helix`. A
    /// `?prefix=…` at the end of the URL takes precedence.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how long to wait for a connection, and for each reply of the server, before an
    /// operation fails with [`StoreUnavailable`](ErrorCode::StoreUnavailable). An operation with
    /// several round trips may take longer. Defaults to ten seconds.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// Sets the approximate number of chunks that are kept per stream, at least one. Older chunks
    /// are trimmed periodically. Defaults to 100,000.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.streams.retention = chunks.max(1);
        self
    }

    /// Sets how long the chunks of a stream are kept after its last write. Defaults to seven days.
    /// The stream's sequence numbers and watermarks are kept with the session.
    pub fn stream_ttl(mut self, ttl: Duration) -> Self {
        self.streams.ttl = ttl.max(Duration::from_secs(1));
        self
    }

    /// Sets the interval at which each reader of a stream polls for chunks whose notification was
    /// lost. Defaults to one second.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.streams.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Returns the approximate number of chunks that are kept per stream.
    pub fn kept_chunks(&self) -> u64 {
        self.streams.retention
    }

    /// Connects to the server and checks that its settings are safe for the store.
    ///
    /// # Errors
    /// [`ConfigInvalid`](ErrorCode::ConfigInvalid) for an invalid URL or prefix, a wrong password,
    /// certificates that the server or the client does not trust, a server that evicts keys, or a
    /// server that is too old; [`StoreReadOnly`](ErrorCode::StoreReadOnly) for a replica;
    /// [`StoreForeign`](ErrorCode::StoreForeign) if another program uses this prefix;
    /// [`StoreNewer`](ErrorCode::StoreNewer) if a newer version wrote under this prefix;
    /// [`StoreUnavailable`](ErrorCode::StoreUnavailable) if the server is unreachable.
    pub async fn open(self) -> Result<RedisStore> {
        self.connect().await.map_err(|error| error.with_operation("store::open"))
    }

    async fn connect(self) -> Result<RedisStore> {
        let location = Location::parse(&self)?;
        let settings = settings::read(&location.client, self.operation_timeout).await?;
        settings.check()?;
        let server = Server::connect(&location, settings.is_cluster, &self).await?;
        let Location { keys, client, .. } = location;
        settings::check_schema(&server, &keys).await?;
        let watch = Arc::new(Watch::new(client, keys.clone(), self.operation_timeout));
        let streams = self.streams;
        let stream_cache = StreamCache::default();
        Ok(RedisStore {
            inner: Arc::new(Inner { server, keys, settings, streams, stream_cache, watch }),
        })
    }

    /// Inspects the server and the store's data without changing anything.
    ///
    /// # Errors
    /// Same as [`open`](Self::open), except that unsuitable server settings and a newer schema are
    /// not errors. They are part of the inspection.
    pub async fn inspect(&self) -> Result<Inspection> {
        let inspected = inspect::inspect(self).await;
        inspected.map_err(|error| error.with_operation("store::inspect"))
    }

    /// Removes every key with the prefix. Meant for tests, and not supported in a cluster.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    #[doc(hidden)]
    pub async fn destroy(self) -> Result<()> {
        let location = Location::parse(&self)?;
        let server = Server::connect(&location, false, &self).await?;
        server.remove_all(&location.keys.pattern()).await
    }
}

/// Rejects a prefix with characters that are special in Redis keys or patterns.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    if (1..=64).contains(&prefix.len()) && prefix.chars().all(is_plain) {
        return Ok(());
    }
    let message = "a prefix must consist of 1 to 64 letters, digits, `-`, `_`, `.` or `:`";
    Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("prefix", prefix))
}
