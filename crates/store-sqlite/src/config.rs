//! Options.

use std::path::{Path, PathBuf};
use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;

use crate::{Inspection, SqliteStore, connection, guarantees, inspect, worker};

/// When an append counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Once the disk has it: an acknowledged append survives a loss of power.
    #[default]
    Full,
    /// Once the operating system has it. Faster; an acknowledged append survives a crash of the
    /// process, but the last ones may be lost with the system. The log stays whole: a writer that
    /// knew of lost appends gets `HistoryLost`.
    Normal,
}

/// Options for opening a [`SqliteStore`].
#[derive(Debug, Clone)]
#[must_use]
pub struct SqliteBuilder {
    pub(crate) config: Config,
}

/// What the builder collects.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) path: PathBuf,
    pub(crate) synchronous: Synchronous,
    pub(crate) busy_timeout: Duration,
    pub(crate) stream_retention: u64,
    pub(crate) poll_interval: Duration,
    pub(crate) max_pages: Option<u32>,
    pub(crate) read_only: bool,
}

impl SqliteBuilder {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            config: Config {
                path: path.to_owned(),
                synchronous: Synchronous::Full,
                busy_timeout: Duration::from_secs(10),
                stream_retention: 100_000,
                poll_interval: Duration::from_millis(50),
                max_pages: None,
                read_only: false,
            },
        }
    }

    /// When an append counts as written. [`Synchronous::Full`] unless told.
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.config.synchronous = synchronous;
        self
    }

    /// How long to wait while another process writes, before
    /// [`StoreBusy`](helix_agents_core::error::ErrorCode::StoreBusy). Ten seconds unless told.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.config.busy_timeout = timeout;
        self
    }

    /// About how many chunks of each stream are kept; older ones are trimmed, from time to time.
    /// At least one. 100,000 unless told.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.config.stream_retention = chunks;
        self
    }

    /// How often to look for chunks that other processes wrote, while anybody reads a stream.
    /// What this process writes is seen at once. 50 ms unless told.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.config.poll_interval = interval;
        self
    }

    /// Opens a file that is there and of the newest schema to read it only, also where its folder
    /// cannot be written. Nothing is made beside it; whatever writes fails with
    /// [`StoreReadOnly`](helix_agents_core::error::ErrorCode::StoreReadOnly). If no log lies beside
    /// the file, no process may write it meanwhile: it is not locked.
    pub fn read_only(mut self) -> Self {
        self.config.read_only = true;
        self
    }

    /// The most pages the file may have: how tests fill a disk.
    #[doc(hidden)]
    pub fn max_pages(mut self, pages: u32) -> Self {
        self.config.max_pages = Some(pages);
        self
    }

    /// What may be relied on in a file that is opened so. As
    /// [`guarantees`](helix_agents_core::store::StateStore::guarantees) of the store, without a
    /// file.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(self.config.synchronous)
    }

    /// About how many chunks of each stream are kept.
    pub fn kept_chunks(&self) -> u64 {
        self.config.stream_retention.max(1)
    }

    /// Looks at the file without making or changing one; none if there is none. Other processes
    /// may have it open.
    ///
    /// # Errors
    /// As [`open`](Self::open), for a file that it would refuse.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the look to end by itself.
    pub async fn inspect(&self) -> Result<Option<Inspection>> {
        let config = self.config.clone();
        worker::once("helix-sqlite-inspect", move || inspect::inspect(&config)).await
    }

    /// Opens the file; makes it if there is none, and brings an older one up to date.
    ///
    /// # Errors
    /// [`ConfigInvalid`] if there is no such folder, or the path is one;
    /// [`StoreForeign`] if the file is another program's database; [`StoreNewer`] if a newer
    /// version wrote it; [`StoreCorrupt`] if it is no database or damaged; [`StoreReadOnly`] if it
    /// cannot be written; [`StoreFull`], [`StoreBusy`] or [`StoreUnavailable`] as they say. The
    /// file is left as it was.
    ///
    /// # Cancel safety
    /// Dropping the future closes the file again; it may have been made.
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
