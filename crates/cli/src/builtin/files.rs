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
use helix_agents::error::Result;
use helix_agents::tool::{Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::if_approved;
use crate::agent_file::AgentFile;

/// The JSON pointer of the folder in an agent file.
const ROOT: &str = "/tools/files/root";
/// The JSON pointer of the approval setting in an agent file.
const APPROVAL: &str = "/tools/files/requires_approval";

/// Access to files below one folder.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilesConfig {
    /// The folder: the agent file's own (`.`) or one below it. With `write`, it must contain neither the
    /// agent file nor a file that it references. `helix run --files` overrides it with any folder.
    #[schemars(length(min = 1))]
    root: String,
    /// Whether the agent may also write files.
    #[serde(default)]
    write: bool,
    /// Whether a user has to approve each `write_file` call, and may edit its arguments.
    #[serde(default)]
    requires_approval: bool,
    /// The maximum number of bytes that one call reads or writes.
    #[serde(default = "default_max_bytes")]
    #[schemars(range(min = 1, max = 1_048_576))]
    max_bytes: usize,
}

fn default_max_bytes() -> usize {
    50_000
}

/// The folder and the limits that the file tools share.
#[derive(Debug, Clone)]
struct SandboxDir {
    root: Arc<Dir>,
    max_bytes: usize,
}

impl FilesConfig {
    /// Creates the tools.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub(super) fn tools(&self, file: &AgentFile, seen: Option<&Path>) -> Result<Vec<Tool>> {
        let refuse = |message| file.source_map.error(vec![file.source_map.problem(ROOT, message)]);
        let opened = match seen {
            Some(folder) => Dir::open_ambient_dir(folder, ambient_authority()),
            None => file.folder.open_dir(&self.root),
        };
        let root = opened.map_err(|error| {
            let root = seen.unwrap_or(Path::new(&self.root)).display();
            refuse(format!(
                "the folder `{root}` cannot be opened: {error} (an agent file may access its own \
                 folder and folders below it; `--files FOLDER` allows another one)"
            ))
        })?;
        if self.requires_approval && !self.write {
            let message = "`requires_approval` applies only to `write_file`: it needs `write`";
            return Err(file.source_map.error(vec![file.source_map.problem(APPROVAL, message)]));
        }
        if self.write
            && let Some(own) = file.own.iter().find(|own| is_below(own, &root))
        {
            let own = own.file_name().unwrap_or(own.as_os_str()).display();
            return Err(refuse(format!(
                "`{own}` is in the folder that the agent may write to: the agent must not be able to \
                 replace its own agent file, prompt or schema; choose another folder that contains \
                 only data, such as `data`"
            )));
        }
        let sandbox = SandboxDir { root: Arc::new(root), max_bytes: self.max_bytes };
        let mut tools = vec![list::tool(&sandbox), read::tool(&sandbox)];
        if self.write {
            tools.push(if_approved(write::tool(&sandbox), self.requires_approval));
        }
        Ok(tools)
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
