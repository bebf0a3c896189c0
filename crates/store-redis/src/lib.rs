//! Sessions and streams in Redis.
//!
//! Use this store for programs on several machines that already have a Redis server or cluster and
//! need the lowest append latency. The server's settings determine its durability: see
//! [`RedisStore`].

use std::sync::Arc;

use helix_agents_core::error::Result;
use helix_agents_core::stream::{CacheEntry, StreamCache};

mod builder;
mod config;
mod connection;
mod detached;
mod diagnosis;
mod error;
mod guarantees;
mod inspect;
mod keys;
mod location;
mod purge;
mod reply;
mod script;
mod settings;
mod state;
mod streams;

pub use builder::RedisBuilder;
pub use diagnosis::Diagnosis;
pub use inspect::Inspection;
pub use settings::{Persistence, ServerSettings};

use connection::Server;
use keys::Keys;
use streams::watch::Watch;

/// A [`StateStore`] and [`StreamManager`] in Redis. Clones are handles to the same connections. All
/// processes that can reach the server share its sessions.
///
/// The keys of a session have one hash tag, so they are stored on one node of a cluster. Most
/// appends are one script and one round trip. An append that changes an index, for example because
/// it starts a run or sets a wake-up time, and creating or deleting a session take additional round
/// trips. Forks share their history with the original, even across the nodes of a cluster. Deleting
/// a tree of sessions is not atomic: a crash during the deletion leaves some of its sessions, and
/// the deletion can be repeated. A child that is created during the deletion of its tree can remain
/// if its creator crashes at that moment. A later purge that includes its status deletes it.
///
/// The server must run with `maxmemory-policy noeviction`, because it would otherwise evict parts
/// of logs when its memory is full. Other servers are refused.
///
/// # Durability
///
/// An acknowledged append survives a crash of this process. Its further durability depends on the
/// server's configuration, and [`guarantees`] reports it. With `appendfsync always`, it survives a
/// power loss; with `everysec`, a power loss may lose about the last second; without an append-only
/// file, a restart of the server loses the appends since its last snapshot. Replication is
/// asynchronous, so a replica that is promoted may lack the last appends. A log that lost its end
/// stays consistent up to that point, and a writer that knew of lost appends gets [`HistoryLost`].
/// Streams have the same durability, but their chunks expire [some time](RedisBuilder::stream_ttl)
/// after the last write.
///
/// # Cancel safety
///
/// If a future is dropped, it is unknown whether the operation took place.
///
/// # Examples
///
/// ```no_run
/// use helix_agents_core::store::StateStore as _;
/// use helix_agents_store_redis::RedisStore;
///
/// # async fn example() -> helix_agents_core::error::Result<()> {
/// let store = RedisStore::open("redis://localhost:6379/0?prefix=agents").await?;
/// for guarantee in store.guarantees() {
///     println!("{}: {} ({})", guarantee.promise, guarantee.holds, guarantee.reason);
/// }
/// store.close().await;
/// # Ok(())
/// # }
/// ```
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
    /// The cached state of each stream that this process writes to.
    stream_cache: StreamCache<tokio::sync::Mutex<CacheEntry>>,
    watch: Arc<Watch>,
}

impl RedisStore {
    /// Connects with the default options.
    ///
    /// # Errors
    /// Returns the errors of [`RedisBuilder::open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::builder(url).open().await
    }

    /// Returns a builder for a store on the server at
    /// `redis://[user][:password@]host[:port][/database]`. Append `?prefix=…` for another prefix.
    /// For a cluster, the address of one node is sufficient.
    ///
    /// `rediss://` connects with TLS. The server's certificate must be valid for the host name. It
    /// must be signed by a root certificate of the system, or by one from the file in
    /// `?sslrootcert=…`. If the server requires a client certificate, `sslcert` and `sslkey` name
    /// it. All three are paths of PEM files that are read when the store is opened.
    pub fn builder(url: &str) -> RedisBuilder {
        RedisBuilder::new(url)
    }

    /// Closes the store for all handles. Later operations fail with
    /// [`Closed`](helix_agents_core::error::ErrorCode::Closed), and so do the readers of streams.
    /// Operations in progress may still take effect.
    ///
    /// Dropping all handles closes the connections.
    #[expect(
        clippy::unused_async,
        reason = "same signature as the other stores, which wait for their connections"
    )]
    pub async fn close(&self) {
        self.inner.server.close();
        self.inner.watch.wake();
    }

    /// Returns the server's settings as of the time when the store was opened.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.inner.settings
    }
}
