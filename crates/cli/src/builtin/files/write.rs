//! `write_file`.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use cap_std::fs::{OpenOptions, OpenOptionsExt as _, Permissions};
use helix_agents::tool::{EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Shelf, refused, tidied};

const DESCRIPTION: &str = "\
Write a text file as a whole: a new one, or in place of one that is there. Missing folders are made.";

/// What to write.
#[derive(Debug, Deserialize, JsonSchema)]
struct Write {
    /// The file, relative to the agent's folder.
    #[schemars(length(min = 1, max = 1000))]
    path: String,
    /// All that is to stand in it.
    text: String,
}

/// What was written.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) bytes: usize,
}

/// The tool. Writing the same text again changes nothing.
pub(super) fn tool(shelf: &Shelf) -> Tool {
    let shelf = shelf.clone();
    let run = move |input: Write, cx: ToolContext| {
        let shelf = shelf.clone();
        async move {
            let mark = format!("{}-{}", cx.session(), cx.call());
            let work = move |shelf: &Shelf| write(shelf, tidied(&input.path), &input.text, &mark);
            shelf.do_with(work).await
        }
    };
    Tool::function("write_file", DESCRIPTION, run).effect(EffectClass::Idempotent)
}

/// Writes beside the file first, so that a reader sees the old text or the new one, whatever dies.
/// Of the files beside, `mark` names this call's own.
pub(super) fn write(
    shelf: &Shelf,
    path: &str,
    text: &str,
    mark: &str,
) -> Result<Written, ToolError> {
    if text.len() > shelf.max_bytes {
        let message = format!(
            "the text has {} bytes, and {} are allowed; write it in parts, to several files",
            text.len(),
            shelf.max_bytes
        );
        return Err(ToolError::new(message));
    }
    let target = Path::new(path);
    let name = match target.components().next_back() {
        Some(Component::Normal(name)) => name,
        _ => return Err(ToolError::new(format!("`{path}` does not name a file"))),
    };
    let refused = |error: io::Error| refused(path, &error);
    if let Some(folder) = target.parent().filter(|it| !it.as_os_str().is_empty()) {
        match shelf.root.metadata(folder) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                shelf.root.create_dir_all(folder).map_err(refused)?;
            }
            Err(error) => return Err(refused(error)),
        }
    }
    let permissions = match shelf.root.symlink_metadata(target) {
        Ok(there) if !there.is_file() => {
            return Err(ToolError::new(format!("`{path}` is there already, and is no file")));
        }
        Ok(there) => Some(there.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(refused(error)),
    };
    let beside = target.with_file_name(name_beside(name, mark));
    let written = write_whole(shelf, &beside, text, permissions)
        .and_then(|()| shelf.root.rename(&beside, &shelf.root, target));
    if let Err(error) = written {
        // The error that counts is the first one.
        let _left = shelf.root.remove_file(&beside);
        return Err(refused(error));
    }
    Ok(Written { path: path.to_owned(), bytes: text.len() })
}

/// A name of its own for each call and file, however long theirs are.
fn name_beside(name: &OsStr, mark: &str) -> String {
    let digest = Sha256::new().chain_update(mark).chain_update([0]).chain_update(name.as_bytes());
    let digest: String =
        digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!(".{digest}.part")
}

/// With the permissions of the file that it will take the place of. Nobody else may see the text
/// before it has them.
fn write_whole(
    shelf: &Shelf,
    path: &Path,
    text: &str,
    permissions: Option<Permissions>,
) -> io::Result<()> {
    // What this very call left behind when its process died.
    match shelf.root.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if permissions.is_some() {
        options.mode(0o600);
    }
    let mut file = shelf.root.open_with(path, &options)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
