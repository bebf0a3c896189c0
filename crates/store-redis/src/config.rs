//! Options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::stream::StreamCache;

use crate::connection::Server;
use crate::place::Place;
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

/// How streams are kept and followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) retention: u64,
    pub(crate) ttl: Duration,
    pub(crate) poll_interval: Duration,
}

/// The URL may hold a password.
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

    /// What all keys begin with: stores of different prefixes know nothing of each other. Letters, digits, `-`, `_`,
    /// `.` and `:`. `helix` unless told, here or by `?prefix=…` at the end of the URL, which comes first.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long to wait for a connection, and for each answer. Ten seconds unless told.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// About how many chunks of each stream are kept; older ones are trimmed, from time to time. At least one. 100,000
    /// unless told.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.streams.retention = chunks.max(1);
        self
    }

    /// How long after the last write the chunks of a stream are forgotten. Seven days unless told. Its numbers and marks stay
    /// with the session.
    pub fn stream_ttl(mut self, ttl: Duration) -> Self {
        self.streams.ttl = ttl.max(Duration::from_secs(1));
        self
    }

    /// How often each reader of a stream looks for chunks of which it was not told. One second unless told.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.streams.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// About how many chunks of each stream are kept.
    pub fn kept_chunks(&self) -> u64 {
        self.streams.retention
    }

    /// Connects, and checks that the server keeps what it is given.
    ///
    /// # Errors
    /// [`ConfigInvalid`](ErrorCode::ConfigInvalid) for another URL or prefix, a password that the server does not
    /// take, certificates that the server or the client does not trust, a server that evicts keys, or one that is too old; [`StoreReadOnly`](ErrorCode::StoreReadOnly) for a
    /// replica; [`StoreNewer`](ErrorCode::StoreNewer) if a newer version wrote under this prefix;
    /// [`StoreUnavailable`](ErrorCode::StoreUnavailable) if nothing answers.
    pub async fn open(self) -> Result<RedisStore> {
        self.connect().await.map_err(|error| error.with_operation("store::open"))
    }

    async fn connect(self) -> Result<RedisStore> {
        let place = Place::of(&self)?;
        let settings = settings::ask(&place.client, self.operation_timeout).await?;
        settings.check()?;
        let server = Server::connect(&place, settings.is_cluster, &self).await?;
        let Place { keys, client, .. } = place;
        settings::check_schema(&server, &keys).await?;
        let watch = Arc::new(Watch::new(client, keys.clone(), self.operation_timeout));
        let streams = self.streams;
        let memories = StreamCache::default();
        Ok(RedisStore {
            inner: Arc::new(Inner { server, keys, settings, streams, memories, watch }),
        })
    }

    /// Looks at the server and at what is kept there, without changing anything.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for the server's settings, which are part of what is answered.
    pub async fn inspect(&self) -> Result<Inspection> {
        let inspected = inspect::inspect(self).await;
        inspected.map_err(|error| error.with_operation("store::inspect"))
    }

    /// Removes every key under the prefix: for tests. Not in a cluster.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub async fn destroy(self) -> Result<()> {
        let place = Place::of(&self)?;
        let server = Server::connect(&place, false, &self).await?;
        server.remove_all(&place.keys.pattern()).await
    }
}

/// Refuses a prefix that would mean something to Redis.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.:".contains(it);
    if (1..=64).contains(&prefix.len()) && prefix.chars().all(is_plain) {
        return Ok(());
    }
    let message = "a prefix has 1 to 64 letters, digits, `-`, `_`, `.` or `:`";
    Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("prefix", prefix))
}
