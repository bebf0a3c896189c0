//! Options of the SQLite store.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// When an append is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Synchronous {
    /// After the disk has confirmed the write. An acknowledged append survives a power loss.
    #[default]
    Full,
    /// After the operating system has accepted the write. This is faster. An acknowledged append
    /// survives a crash of the process, but a crash of the system may lose the last appends. The
    /// log stays consistent: a writer that knew of lost appends gets `HistoryLost`.
    Normal,
}

/// The options with which a file is opened.
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

impl Config {
    /// Returns the default options for a file.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(10),
            stream_retention: 100_000,
            poll_interval: Duration::from_millis(50),
            max_pages: None,
            read_only: false,
        }
    }
}
