//! The tools `list_files`, `read_file` and `write_file`: access to files below one folder.
//!
//! The folder is held open, and the operating system resolves every path below it (with `openat2` or
//! component by component). `..`, absolute paths and symbolic links that lead out of the folder are
//! rejected when a file is opened, even if the folder changes concurrently.

mod list;
mod read;
mod write;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::tool::{Tool, ToolError};

use crate::if_approved;

/// The default of [`FileTools::max_bytes`].
pub const DEFAULT_MAX_BYTES: usize = 50_000;

/// The file tools of one folder. By default they can only read.
///
/// # Examples
///
/// ```
/// use helix_agents_tools::files::FileTools;
///
/// # fn main() -> Result<(), helix_agents_core::error::Error> {
/// # let folder = std::env::temp_dir();
/// let files = FileTools::open(folder)?.writable().max_bytes(10_000);
/// assert_eq!(files.tools().len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FileTools {
    root: Arc<Dir>,
    write: bool,
    requires_approval: bool,
    max_bytes: usize,
}

/// The folder and the limits that the file tools share.
#[derive(Debug, Clone)]
struct SandboxDir {
    root: Arc<Dir>,
    max_bytes: usize,
}

impl FileTools {
    /// Opens a folder.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ToolInvalid`] if the folder cannot be opened.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let root = Dir::open_ambient_dir(folder, ambient_authority()).map_err(|error| {
            let message = format!("the folder of the file tools cannot be opened: {error}");
            Error::new(ErrorCode::ToolInvalid, message).with_context("folder", folder.display())
        })?;
        Ok(Self::new(root))
    }

    /// Uses a folder that is already open.
    #[must_use]
    pub fn new(folder: Dir) -> Self {
        Self {
            root: Arc::new(folder),
            write: false,
            requires_approval: false,
            max_bytes: DEFAULT_MAX_BYTES,
        }
    }

    /// Allows writing files, which adds `write_file`.
    #[must_use]
    pub fn writable(mut self) -> Self {
        self.write = true;
        self
    }

    /// Makes each `write_file` call require an approval. The approver may edit its arguments. Has no effect on tools that
    /// only read.
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.requires_approval = true;
        self
    }

    /// Sets the maximum number of bytes that one call reads or writes. Default: 50,000.
    #[must_use]
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.max_bytes = most;
        self
    }

    /// Returns `true` if a file is in the folder or below it, by its path or after resolving links.
    ///
    /// A program that lets an agent write files should check with this that the agent cannot replace the files that
    /// define it.
    #[must_use]
    pub fn contains(&self, file: &Path) -> bool {
        is_below(file, &self.root)
    }

    /// Creates the tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        let sandbox = SandboxDir { root: Arc::clone(&self.root), max_bytes: self.max_bytes };
        let mut tools = vec![list::tool(&sandbox), read::tool(&sandbox)];
        if self.write {
            tools.push(if_approved(write::tool(&sandbox), self.requires_approval));
        }
        tools
    }
}

/// Returns `true` if a file is in a folder or below it, by its path or after resolving links.
fn is_below(file: &Path, root: &Dir) -> bool {
    let target = file.canonicalize().ok();
    let folders = target.iter().flat_map(|target| target.ancestors().skip(1));
    file.ancestors().skip(1).chain(folders).any(|folder| is_same(folder, root))
}

/// Returns `true` if a path leads to an open folder, or if that cannot be determined.
fn is_same(folder: &Path, root: &Dir) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(folder), root.dir_metadata()) {
        (Ok(folder), Ok(root)) => (folder.dev(), folder.ino()) == (root.dev(), root.ino()),
        _ => true,
    }
}

impl SandboxDir {
    /// Runs blocking disk work on a blocking thread.
    async fn do_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let sandbox = self.clone();
        tokio::task::spawn_blocking(move || work(&sandbox)).await?
    }
}

/// The error that the model sees if a path cannot be used.
fn refused(path: &str, error: &std::io::Error) -> ToolError {
    use std::io::ErrorKind;
    let message = match error.kind() {
        ErrorKind::NotFound => {
            format!("`{path}` does not exist; list_files shows the existing files")
        }
        ErrorKind::PermissionDenied => format!(
            "`{path}` is not allowed: a path must be below the agent's folder, such as \
             `notes/today.txt`, without `..`, a leading `/`, or links that lead out of the folder"
        ),
        _ => format!("`{path}` cannot be used: {error}"),
    };
    ToolError::new(message)
}

/// Normalizes a path from the model: the folder itself may be written as `.`, `/` or the empty string.
fn tidied(path: &str) -> &str {
    // Spaces are kept: a file name may begin or end with them.
    match path {
        "" | "/" | "./" => ".",
        path => path,
    }
}

#[cfg(test)]
mod tests;
