//! `list_files`, `read_file` and `write_file`: files below one folder.
//!
//! The folder is held open, and every path is resolved below it by the system (`openat2` or step by
//! step), so `..`, absolute paths and symbolic links that lead out are refused at the moment of
//! opening, whatever else goes on in the folder.

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

/// Where the folder stands in an agent file.
const ROOT: &str = "/tools/files/root";
const APPROVAL: &str = "/tools/files/requires_approval";

/// Files below one folder.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilesForm {
    /// The folder: the agent file's own (`.`), or one below it; with `write`, one in which neither
    /// the agent file nor a file that it names lies. Another one is named by `helix run --files`.
    #[schemars(length(min = 1))]
    root: String,
    /// Whether the agent may write files, too.
    #[serde(default)]
    write: bool,
    /// Whether a person has to approve each `write_file` before it is done, and may change it.
    #[serde(default)]
    requires_approval: bool,
    /// The most bytes that are read or written at once.
    #[serde(default = "default_max_bytes")]
    #[schemars(range(min = 1, max = 1_048_576))]
    max_bytes: usize,
}

fn default_max_bytes() -> usize {
    50_000
}

/// What the tools share.
#[derive(Debug, Clone)]
struct Shelf {
    root: Arc<Dir>,
    max_bytes: usize,
}

impl FilesForm {
    /// The tools.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub(super) fn tools(&self, file: &AgentFile, seen: Option<&Path>) -> Result<Vec<Tool>> {
        let refuse = |message| file.places.error(vec![file.places.problem(ROOT, message)]);
        let opened = match seen {
            Some(folder) => Dir::open_ambient_dir(folder, ambient_authority()),
            None => file.folder.open_dir(&self.root),
        };
        let root = opened.map_err(|error| {
            let root = seen.unwrap_or(Path::new(&self.root)).display();
            refuse(format!(
                "the folder `{root}` cannot be opened: {error} (an agent file sees its own folder \
                 and those below it; `--files FOLDER` opens another one)"
            ))
        })?;
        if self.requires_approval && !self.write {
            let message = "only `write_file` asks for approval: `requires_approval` needs `write`";
            return Err(file.places.error(vec![file.places.problem(APPROVAL, message)]));
        }
        if self.write
            && let Some(own) = file.own.iter().find(|own| lies_below(own, &root))
        {
            let own = own.file_name().unwrap_or(own.as_os_str()).display();
            return Err(refuse(format!(
                "`{own}` lies in the folder that the agent may write in: it must not be able to \
                 write a new agent file, prompt or schema for itself; name another folder, such as \
                 `data`, with nothing but its data in it"
            )));
        }
        let shelf = Shelf { root: Arc::new(root), max_bytes: self.max_bytes };
        let mut tools = vec![list::tool(&shelf), read::tool(&shelf)];
        if self.write {
            tools.push(if_approved(write::tool(&shelf), self.requires_approval));
        }
        Ok(tools)
    }
}

/// Whether a file lies in a folder or below it: as it is named, or where links lead to.
fn lies_below(file: &Path, root: &Dir) -> bool {
    let target = file.canonicalize().ok();
    let folders = target.iter().flat_map(|it| it.ancestors().skip(1));
    file.ancestors().skip(1).chain(folders).any(|folder| is_same(folder, root))
}

/// Whether a path leads to an open folder. Of what cannot be looked at nobody knows.
fn is_same(folder: &Path, root: &Dir) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(folder), root.dir_metadata()) {
        (Ok(folder), Ok(root)) => (folder.dev(), folder.ino()) == (root.dev(), root.ino()),
        _ => true,
    }
}

impl Shelf {
    /// Does something that waits for the disk, where it holds nobody up.
    async fn do_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let shelf = self.clone();
        tokio::task::spawn_blocking(move || work(&shelf)).await?
    }
}

/// What the model is told if the system refuses a path.
fn refused(path: &str, error: &std::io::Error) -> ToolError {
    use std::io::ErrorKind;
    let message = match error.kind() {
        ErrorKind::NotFound => {
            format!("there is no `{path}`; list_files tells which files there are")
        }
        ErrorKind::PermissionDenied => format!(
            "`{path}` is not allowed: only paths below the agent's folder are, such as \
             `notes/today.txt`, without `..` or a leading `/`, and only where links do not lead out"
        ),
        _ => format!("`{path}` cannot be used: {error}"),
    };
    ToolError::new(message)
}

/// A path as a model writes it: the folder itself may be called `.`, `/` or nothing.
fn tidied(path: &str) -> &str {
    // Blanks count: a file's name may begin or end with them.
    match path {
        "" | "/" | "./" => ".",
        path => path,
    }
}

#[cfg(test)]
mod tests;
