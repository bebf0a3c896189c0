//! The tool `write_file`.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use cap_std::fs::{OpenOptions, OpenOptionsExt as _, Permissions};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{SandboxDir, refused, tidied};

const DESCRIPTION: &str = "\
Write a whole text file. It creates the file or replaces an existing one, and creates missing folders.";

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct Write {
    /// The file, relative to the agent's folder.
    #[schemars(length(min = 1, max = 1000))]
    path: String,
    /// The whole content of the file.
    text: String,
}

/// The output of the tool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) bytes: usize,
}

/// Creates the tool. It is idempotent: writing the same text again changes nothing.
pub(super) fn tool(sandbox: &SandboxDir) -> Tool {
    let sandbox = sandbox.clone();
    let run = move |input: Write, cx: ToolContext| {
        let sandbox = sandbox.clone();
        async move {
            let call_key = format!("{}-{}", cx.session(), cx.call());
            let work = move |sandbox: &SandboxDir| {
                write(sandbox, tidied(&input.path), &input.text, &call_key)
            };
            sandbox.do_with(work).await
        }
    };
    Tool::function("write_file", DESCRIPTION, run).effect(EffectClass::Idempotent)
}

/// Writes a temporary file and renames it, so that a reader sees either the old or the new text, even
/// after a crash. `call_key` is unique to the call and makes the name of the temporary file its own.
pub(super) fn write(
    sandbox: &SandboxDir,
    path: &str,
    text: &str,
    call_key: &str,
) -> Result<Written, ToolError> {
    if text.len() > sandbox.max_bytes {
        let message = format!(
            "the text has {} bytes, but only {} are allowed; split it into several files",
            text.len(),
            sandbox.max_bytes
        );
        return Err(ToolError::new(message));
    }
    let target = Path::new(path);
    let name = match target.components().next_back() {
        Some(Component::Normal(name)) => name,
        _ => return Err(ToolError::new(format!("`{path}` does not name a file"))),
    };
    let refused = |error: io::Error| refused(path, &error);
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        match sandbox.root.metadata(folder) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                sandbox.root.create_dir_all(folder).map_err(refused)?;
            }
            Err(error) => return Err(refused(error)),
        }
    }
    let permissions = match sandbox.root.symlink_metadata(target) {
        Ok(there) if !there.is_file() => {
            return Err(ToolError::new(format!("`{path}` exists and is not a file")));
        }
        Ok(there) => Some(there.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(refused(error)),
    };
    let temporary = target.with_file_name(temporary_name(name, call_key));
    let written = write_whole(sandbox, &temporary, text, permissions)
        .and_then(|()| sandbox.root.rename(&temporary, &sandbox.root, target));
    if let Err(error) = written {
        // The first error is the one that is reported.
        let _left = sandbox.root.remove_file(&temporary);
        return Err(refused(error));
    }
    Ok(Written { path: path.to_owned(), bytes: text.len() })
}

/// The name of the temporary file. It is unique per call and file, and of fixed length.
fn temporary_name(name: &OsStr, call_key: &str) -> String {
    let digest =
        Sha256::new().chain_update(call_key).chain_update([0]).chain_update(name.as_bytes());
    let digest: String =
        digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!(".{digest}.part")
}

/// Writes the temporary file with the permissions of the file that it replaces. Until it has them, only
/// the owner can read it.
fn write_whole(
    sandbox: &SandboxDir,
    path: &Path,
    text: &str,
    permissions: Option<Permissions>,
) -> io::Result<()> {
    // A previous attempt of this call may have left its temporary file behind when its process crashed.
    match sandbox.root.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if permissions.is_some() {
        options.mode(0o600);
    }
    let mut file = sandbox.root.open_with(path, &options)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
