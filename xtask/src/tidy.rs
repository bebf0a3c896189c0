//! `tidy`: rules about the repository's texts, which no compiler checks.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::{process, workspace};

mod architecture;
mod manifests;
mod text;

pub(crate) use text::has_word;

#[cfg(test)]
mod tests;

/// Folders with recordings of other programs, which must not change.
const RECORDED: &[&str] = &["/cassettes/", "/journals/"];

/// A text file of the repository.
pub(crate) struct File {
    /// The path relative to the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns every violation of every rule.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let files = files()?;
    let members = workspace::members()?;
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();

    let mut complaints: Vec<String> = files.iter().flat_map(text::check).collect();
    complaints.extend(text::check_stale_exceptions(&files));
    complaints.extend(manifests::check_workspace(&read("Cargo.toml")?));
    for member in &members {
        let manifest = std::fs::read_to_string(&member.manifest_path)
            .with_context(|| format!("could not read the manifest of {}", member.name))?;
        complaints.extend(manifests::check_member(&member.name, &manifest)?);
    }
    match std::fs::read_to_string("ARCHITECTURE.md") {
        Ok(text) => complaints.extend(architecture::check(&text, &names)),
        Err(_) => complaints
            .push("ARCHITECTURE.md: missing; it names every crate and its invariants".to_owned()),
    }
    Ok(complaints)
}

/// Returns all text files that git tracks or would add, without recordings.
pub(crate) fn files() -> Result<Vec<File>> {
    let paths = if Path::new(".git").exists() { tracked()? } else { walk(Path::new("."))? };
    let mut files = Vec::new();
    for path in paths.iter().filter(|path| !RECORDED.iter().any(|folder| path.contains(folder))) {
        let Ok(bytes) = std::fs::read(path) else {
            continue;
        }; // deleted, but not yet in git
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: path.clone(), text });
        }
    }
    Ok(files)
}

fn tracked() -> Result<Vec<String>> {
    // A checkout that is mounted into a container belongs to another user. Reading its file names is harmless.
    let list = process::capture(&mut process::program(
        "git",
        ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    ))?;
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// Returns the files of an unpacked archive, which has no git.
fn walk(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        if path.is_symlink() || path == Path::new("./target") {
            continue;
        } else if path.is_dir() {
            found.extend(walk(&path)?);
        } else {
            found.push(path.strip_prefix(".").unwrap_or(&path).to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("could not read {path}"))
}
