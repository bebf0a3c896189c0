//! A builder that opens and inspects a store file.

use std::path::Path;
use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;

use crate::config::{Config, Synchronous};
use crate::{Inspection, SqliteStore, connection, guarantees, inspect, worker};

/// Options for opening a [`SqliteStore`].
#[derive(Debug, Clone)]
#[must_use]
pub struct SqliteBuilder {
    pub(crate) config: Config,
}

impl SqliteBuilder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { config: Config::new(path) }
    }

    /// Sets when an append is acknowledged. Defaults to [`Synchronous::Full`].
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.config.synchronous = synchronous;
        self
    }

    /// Sets how long an operation waits for the lock of another process before it fails with
    /// [`StoreBusy`](helix_agents_core::error::ErrorCode::StoreBusy). Defaults to ten seconds.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.config.busy_timeout = timeout;
        self
    }

    /// Sets the approximate number of chunks that are kept per stream. Older chunks are trimmed
    /// periodically. Zero is treated as one. Defaults to 100,000.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.config.stream_retention = chunks;
        self
    }

    /// Sets the interval at which the store polls for chunks of other processes while a stream has
    /// readers. Readers see chunks of this process immediately. Defaults to 50 ms.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.config.poll_interval = interval;
        self
    }

    /// Opens an existing file of the newest schema for reading only. This also works in a folder
    /// that is not writable, because no files are created next to the database. Every write fails
    /// with [`StoreReadOnly`](helix_agents_core::error::ErrorCode::StoreReadOnly).
    ///
    /// If there is no write-ahead log next to the file, the store does not lock the file. You then
    /// have to ensure that no process writes to it while the store is open.
    pub fn read_only(mut self) -> Self {
        self.config.read_only = true;
        self
    }

    /// Sets the maximum number of pages of the file. Tests use it to simulate a full disk.
    #[doc(hidden)]
    pub fn max_pages(mut self, pages: u32) -> Self {
        self.config.max_pages = Some(pages);
        self
    }

    /// Returns the guarantees of a store that is opened with these options, like
    /// [`guarantees`](helix_agents_core::store::StateStore::guarantees) of the store, but without
    /// opening a file.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(self.config.synchronous)
    }

    /// Returns the approximate number of chunks that are kept per stream.
    pub fn kept_chunks(&self) -> u64 {
        self.config.stream_retention.max(1)
    }

    /// Inspects the file without creating or changing one. Returns `None` if the file does not
    /// exist. Other processes may have the file open.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open) for a file that `open` would refuse.
    ///
    /// # Cancel safety
    /// Dropping the future does not cancel the inspection. It finishes in the background.
    pub async fn inspect(&self) -> Result<Option<Inspection>> {
        let config = self.config.clone();
        worker::once("helix-sqlite-inspect", move || inspect::inspect(&config)).await
    }

    /// Opens the file. Creates it if it does not exist, and migrates an older schema.
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`] if the folder does not exist or the path is a folder;
    /// [`StoreForeign`] if the file is a database of another program; [`StoreNewer`] if a newer
    /// version wrote it; [`StoreCorrupt`] if it is damaged or not a database; [`StoreReadOnly`] if
    /// it is not writable; [`StoreFull`], [`StoreBusy`] or [`StoreUnavailable`] as described in
    /// their documentation. A refused file is not changed.
    ///
    /// # Cancel safety
    /// Dropping the future closes the file. The file may have been created.
    ///
    /// [`ConfigInvalid`]: helix_agents_core::error::ErrorCode::ConfigInvalid
    /// [`StoreForeign`]: helix_agents_core::error::ErrorCode::StoreForeign
    /// [`StoreNewer`]: helix_agents_core::error::ErrorCode::StoreNewer
    /// [`StoreCorrupt`]: helix_agents_core::error::ErrorCode::StoreCorrupt
    /// [`StoreReadOnly`]: helix_agents_core::error::ErrorCode::StoreReadOnly
    /// [`StoreFull`]: helix_agents_core::error::ErrorCode::StoreFull
    /// [`StoreBusy`]: helix_agents_core::error::ErrorCode::StoreBusy
    /// [`StoreUnavailable`]: helix_agents_core::error::ErrorCode::StoreUnavailable
    pub async fn open(self) -> Result<SqliteStore> {
        let config = self.config.clone();
        let connections = worker::once("helix-sqlite-open", move || connection::open_all(&config));
        SqliteStore::start(self.config, connections.await?)
    }
}
