//! The tool `list_files`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SandboxDir, refused, tidied};

/// The maximum number of entries of a result.
const MAX_ENTRIES: usize = 500;
/// The maximum depth of a recursive list.
const MAX_DEPTH: usize = 16;

/// The maximum number of entries read from one folder.
const MAX_LOOKED_AT: usize = 10_000;

const DESCRIPTION: &str = "\
List the files and folders in a folder, with their sizes in bytes. Paths are relative to the \
agent's folder and can be given to the other file tools as they are. Links are listed but not \
followed.";

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct List {
    /// A folder, relative to the agent's folder. Omit it for the agent's folder itself.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    path: String,
    /// Whether to list the contents of subfolders, too.
    #[serde(default)]
    recursive: bool,
}

/// The output of the tool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Listed {
    pub(super) entries: Vec<Entry>,
    /// Whether entries were omitted.
    pub(super) more: bool,
}

/// One file or folder.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
}

/// Creates the tool.
pub(super) fn tool(sandbox: &SandboxDir) -> Tool {
    let sandbox = sandbox.clone();
    let run = move |input: List, _: ToolContext| {
        let sandbox = sandbox.clone();
        async move {
            let work =
                move |sandbox: &SandboxDir| list(sandbox, tidied(&input.path), input.recursive);
            sandbox.do_with(work).await
        }
    };
    Tool::function("list_files", DESCRIPTION, run).effect(EffectClass::Pure)
}

pub(super) fn list(sandbox: &SandboxDir, path: &str, recursive: bool) -> Result<Listed, ToolError> {
    let mut listed = Listed { entries: Vec::new(), more: false };
    let mut folders = VecDeque::from([(PathBuf::from(path), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let found = match entries(sandbox, &folder, &mut listed.more) {
            Ok(found) => found,
            // A subfolder that cannot be read or was deleted meanwhile does not hide the others.
            Err(_) if depth > 0 => {
                listed.more = true;
                continue;
            }
            Err(error) => return Err(refused(path, &error)),
        };
        for entry in found {
            if listed.entries.len() >= MAX_ENTRIES {
                listed.more = true;
                return Ok(listed);
            }
            if recursive && entry.kind == "folder" {
                if depth < MAX_DEPTH {
                    folders.push_back((PathBuf::from(&entry.path), depth + 1));
                } else {
                    listed.more = true;
                }
            }
            listed.entries.push(entry);
        }
    }
    Ok(listed)
}

/// The entries of one folder, sorted by path.
fn entries(sandbox: &SandboxDir, folder: &Path, more: &mut bool) -> std::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (index, entry) in sandbox.root.read_dir(folder)?.enumerate() {
        if index >= MAX_LOOKED_AT {
            *more = true;
            break;
        }
        let entry = entry?;
        let path = folder.strip_prefix(".").unwrap_or(folder).join(entry.file_name());
        // The model could not refer to a path that is not UTF-8.
        let Some(path) = path.to_str() else {
            *more = true;
            continue;
        };
        let kind = entry.file_type()?;
        let (kind, bytes) = match () {
            () if kind.is_dir() => ("folder", None),
            () if kind.is_file() => ("file", entry.metadata().ok().map(|metadata| metadata.len())),
            () if kind.is_symlink() => ("link", None),
            () => ("other", None),
        };
        entries.push(Entry { path: path.to_owned(), kind, bytes });
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}
