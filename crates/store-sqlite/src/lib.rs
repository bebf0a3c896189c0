//! Sessions and streams in one SQLite file.
//!
//! Use this store for programs that run on one machine. It needs no installation, and several
//! processes can open the same file.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::error::Result;
use helix_agents_core::store::WriteQueue;
use helix_agents_core::stream::{Receipts, StreamCache};
use tokio::sync::mpsc;

mod builder;
mod clock;
mod config;
mod connection;
mod diagnosis;
mod error;
mod folder;
mod guarantees;
mod inspect;
mod migrations;
mod prepared;
mod row_key;
mod state;
mod streams;
mod unsigned;
mod worker;
mod writer;

pub use builder::SqliteBuilder;
pub use config::Synchronous;
pub use diagnosis::Diagnosis;
pub use folder::Folder;
pub use inspect::Inspection;

use config::Config;
use connection::Connections;
use streams::watch::Watch;
use worker::{Readers, Shared};
use writer::{Durability, Writer};

/// A [`StateStore`] and [`StreamManager`] in one SQLite file. Clones are handles to the same open
/// file. Several processes can use one file concurrently.
///
/// The file is in WAL mode, so two more files exist next to it while it is open. All three belong
/// together. The file must be on a local disk, because network file systems do not provide the
/// locks that SQLite needs.
///
/// No operation blocks the executor. The connections live on dedicated threads, one that writes and
/// two that read, each with a queue. Writes that are queued at the same time share a transaction
/// (at most 64 writes or 10 ms), so the cost per write falls when many runs are active. The threads
/// end with the last handle.
///
/// # Durability
///
/// An acknowledged append survives a crash of the process, a crash of the system, and a power loss,
/// provided that the disk keeps what it confirmed. With [`Synchronous::Normal`], a crash of the
/// system may lose the last appends. Streams survive a crash of the process, but a crash of the
/// system may lose their last chunks.
///
/// # Cancel safety
///
/// If a future is dropped, it is unknown whether the operation took place.
///
/// # Examples
///
/// ```
/// use helix_agents_core::store::{SessionFilter, StateStore as _, StoreScope, list_all};
/// use helix_agents_store_sqlite::SqliteStore;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("agents.db");
/// let store = SqliteStore::open(&path).await?;
/// assert_eq!(store.scope(), StoreScope::Machine);
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
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    writer: Writer,
    /// The identity of the writer's queue.
    write_queue: WriteQueue,
    /// The failures that acknowledged appends survive.
    durability: Durability,
    readers: Readers,
    watch: Arc<Watch>,
    /// The receipts of the last batches of each stream.
    receipts: StreamCache<Mutex<Receipts>>,
    stream_retention: u64,
    synchronous: Synchronous,
    /// A channel that closes when all threads have ended.
    ended: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

impl SqliteStore {
    /// Opens the file with the default options. Creates it if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`SqliteBuilder::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// Returns a builder with the options for opening a file.
    pub fn builder(path: impl AsRef<Path>) -> SqliteBuilder {
        SqliteBuilder::new(path.as_ref())
    }

    /// Closes the file for all handles. Operations that are already queued are completed. Later
    /// operations fail with [`Closed`](helix_agents_core::error::ErrorCode::Closed), and so do the
    /// readers of streams. Returns after the file is closed.
    ///
    /// Dropping all handles also closes the file, in the background.
    pub async fn close(&self) {
        let inner = &self.inner;
        inner.writer.close();
        inner.readers.close();
        inner.watch.close();
        while inner.ended.lock().await.recv().await.is_some() {}
    }

    fn start(config: Config, connections: Connections) -> Result<Self> {
        let (shared, ended) = Shared::new();
        let inner = Inner {
            writer: Writer::start(connections.writer, &shared)?,
            write_queue: WriteQueue::new(),
            durability: match config.synchronous {
                Synchronous::Full => Durability::System,
                Synchronous::Normal => Durability::Process,
            },
            readers: Readers::start(connections.readers, &shared)?,
            receipts: StreamCache::default(),
            stream_retention: config.stream_retention.max(1),
            synchronous: config.synchronous,
            watch: Arc::new(Watch::new(config, shared)),
            ended: tokio::sync::Mutex::new(ended),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// Locks a mutex and ignores poison, because its data is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
