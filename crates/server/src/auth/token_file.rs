//! The state of a file of tokens, by which a change is noticed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file of tokens, as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// The time of the last change and the size; `None` if the file could not be accessed.
    state: Option<(Option<SystemTime>, u64)>,
}

impl TokenFile {
    /// Returns the present state of a file.
    pub(super) fn at(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        let state = metadata.map(|metadata| (metadata.modified().ok(), metadata.len()));
        Self { path: path.to_owned(), state }
    }

    /// Returns the state of the file now, if it has changed.
    pub(super) fn changed(&self) -> Option<Self> {
        let now = Self::at(&self.path);
        (now != *self).then_some(now)
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
