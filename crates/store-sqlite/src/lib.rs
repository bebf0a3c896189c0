//! Sessions and streams in one SQLite file.
//!
//! The store for programs that run on one machine: nothing to install, and several processes may
//! have the same file open.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::error::Result;
use helix_agents_core::stream::{Answers, StreamCache};
use tokio::sync::mpsc;

mod clock;
mod config;
mod connection;
mod error;
mod guarantees;
mod inspect;
mod migrations;
mod place;
mod prepared;
mod state;
mod streams;
mod worker;
mod writer;

pub use config::{SqliteBuilder, Synchronous};
pub use inspect::Inspection;

use connection::Connections;
use streams::watch::Watch;
use worker::{Readers, Shared};
use writer::{Durability, Writer};

/// A [`StateStore`] and [`StreamManager`] in one SQLite file. Clones are handles of the same open
/// file; what several processes do with one file fits together.
///
/// The file is in WAL mode, so two more lie beside it while it is open: all three belong together.
/// It has to be on a local disk; network file systems do not lock as SQLite needs it.
///
/// No operation blocks the executor: connections live on threads of their own, one that writes and
/// two that read, behind queues of bounded length. What waits to be written when a transaction
/// begins is written in it together, so many runs at a time cost less each. The threads end with
/// the last handle.
///
/// # Durability
///
/// An acknowledged append survives a crash of the process, of the system and a loss of power, as
/// far as the disk keeps what it has confirmed; with [`Synchronous::Normal`] the last moments
/// before a crash of the system may be lost. Streams survive the process, and may lose the last
/// moments with the system.
///
/// # Cancel safety
///
/// Dropping a future leaves open whether the operation took place.
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
    /// What acknowledged appends survive.
    durability: Durability,
    readers: Readers,
    watch: Arc<Watch>,
    /// Of the last batches of each stream.
    answers: StreamCache<Mutex<Answers>>,
    stream_retention: u64,
    synchronous: Synchronous,
    /// Ends when all threads have.
    ended: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

impl SqliteStore {
    /// Opens the file with the default options; makes it if there is none.
    ///
    /// # Errors
    /// As [`SqliteBuilder::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// Options for opening a file.
    pub fn builder(path: impl AsRef<Path>) -> SqliteBuilder {
        SqliteBuilder::new(path.as_ref())
    }

    /// Closes the file for all handles: what has been asked for is done first, what is asked for
    /// later fails with [`Closed`](helix_agents_core::error::ErrorCode::Closed). Returns once the
    /// file is closed. Readers of streams end with that error.
    ///
    /// Dropping all handles closes the file as well, a moment later.
    pub async fn close(&self) {
        let inner = &self.inner;
        inner.writer.close();
        inner.readers.close();
        inner.watch.close();
        while inner.ended.lock().await.recv().await.is_some() {}
    }

    fn start(config: config::Config, connections: Connections) -> Result<Self> {
        let (shared, ended) = Shared::new();
        let inner = Inner {
            writer: Writer::start(connections.writer, &shared)?,
            durability: match config.synchronous {
                Synchronous::Full => Durability::System,
                Synchronous::Normal => Durability::Process,
            },
            readers: Readers::start(connections.readers, &shared)?,
            answers: StreamCache::default(),
            stream_retention: config.stream_retention.max(1),
            synchronous: config.synchronous,
            watch: Arc::new(Watch::new(config, shared)),
            ended: tokio::sync::Mutex::new(ended),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// The guard of a lock whose data is whole even if a holder panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
