//! Sessions and streams in Redis.
//!
//! The store for programs on several machines that already have a Redis, or a Redis Cluster, and want the shortest
//! appends. How much survives is decided by the server's settings: see [`RedisStore`].

use std::sync::Arc;

use helix_agents_core::error::Result;
use helix_agents_core::stream::{CacheEntry, StreamCache};

mod config;
mod connection;
mod detached;
mod error;
mod guarantees;
mod inspect;
mod keys;
mod place;
mod purge;
mod reply;
mod script;
mod settings;
mod state;
mod streams;

pub use config::RedisBuilder;
pub use inspect::Inspection;
pub use settings::{Persistence, ServerSettings};

use connection::Server;
use keys::Keys;
use streams::watch::Watch;

/// A [`StateStore`] and [`StreamManager`] in Redis. Clones are handles of the same connections; whatever reaches the
/// server sees the same sessions.
///
/// A session's keys have one hash tag, so they lie on one node of a cluster. What an append decides and writes is
/// one script and one round trip; beginning a run, and beginning or deleting a session, take some more for indexes.
/// Forks share their history with the original, also across the nodes of a cluster. Deleting a tree of sessions is
/// not one moment: a crash in between leaves the upper sessions, which can be deleted again.
///
/// Memory is what bounds it: the server has to have `maxmemory-policy noeviction`, or it would throw away parts of
/// logs, and is refused otherwise.
///
/// # Durability
///
/// An acknowledged append survives a crash of this process. What it survives beyond that says the server's
/// configuration, and so do [`guarantees`]: with `appendfsync always` a loss of power, with `everysec` all but the
/// last second before one, without an append-only file no restart of the server. Replication is asynchronous: a
/// replica that takes over may lack the last appends. A log that lost its end stays whole up to there, and a writer
/// that knew of more gets [`HistoryLost`]. Streams are as durable, and are forgotten some time after their last
/// chunk.
///
/// # Cancel safety
///
/// Dropping a future leaves open whether the operation took place.
///
/// [`StateStore`]: helix_agents_core::store::StateStore
/// [`StreamManager`]: helix_agents_core::stream::StreamManager
/// [`guarantees`]: helix_agents_core::store::StateStore::guarantees
/// [`HistoryLost`]: helix_agents_core::store::AppendOutcome::HistoryLost
#[derive(Debug, Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    server: Server,
    keys: Keys,
    settings: ServerSettings,
    streams: config::Streams,
    /// What the writers of each stream know of it.
    memories: StreamCache<tokio::sync::Mutex<CacheEntry>>,
    watch: Arc<Watch>,
}

impl RedisStore {
    /// Connects with the default options.
    ///
    /// # Errors
    /// As [`RedisBuilder::open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::builder(url).open().await
    }

    /// Options for connecting to the server at `redis://[user][:password@]host[:port][/database]`, with `?prefix=…` at
    /// its end for another prefix. One node's address suffices for a cluster.
    ///
    /// `rediss://` connects with TLS. The server's certificate has to be valid for the host's name by a root that the
    /// system knows, or by those of the file in `?sslrootcert=…`; a server that wants one of the client gets that of
    /// `sslcert` and `sslkey`. All three are paths of PEM files, which are read when the store is opened.
    pub fn builder(url: &str) -> RedisBuilder {
        RedisBuilder::new(url)
    }

    /// Closes the store for all handles: what is asked for later fails with
    /// [`Closed`](helix_agents_core::error::ErrorCode::Closed), and readers of streams end with that error. What is
    /// under way may still be done.
    ///
    /// Dropping all handles closes the connections.
    #[expect(clippy::unused_async, reason = "as its siblings, which wait for their connections")]
    pub async fn close(&self) {
        self.inner.server.close();
        self.inner.watch.wake();
    }

    /// What the server said of itself when it was connected to.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.inner.settings
    }
}
