//! The workspace, as cargo reports it.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process;

/// A package of `cargo metadata`.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    /// The registry or repository of the package. `None` for our own packages.
    pub source: Option<String>,
    pub license: Option<String>,
    pub manifest_path: PathBuf,
    pub dependencies: Vec<Dependency>,
}

/// A dependency as written in a manifest.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub name: String,
    /// The version requirement. It is `*` if the manifest has none.
    pub req: String,
    /// `None` for a normal dependency, otherwise `dev` or `build`.
    pub kind: Option<String>,
    /// The path of a package in this repository.
    pub path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Makes the root of the repository the current directory.
pub(crate) fn enter() -> Result<()> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = own.parent().context("xtask has no parent folder")?;
    std::env::set_current_dir(root).with_context(|| format!("could not enter {}", root.display()))
}

/// Returns the packages of this repository.
pub(crate) fn members() -> Result<Vec<Package>> {
    metadata(&["--no-deps"])
}

/// Returns the packages of this repository and all their dependencies, on every platform.
pub(crate) fn packages() -> Result<Vec<Package>> {
    metadata(&["--all-features"])
}

/// Returns `true` if this repository has a package with this name.
pub(crate) fn has(name: &str) -> Result<bool> {
    Ok(members()?.iter().any(|package| package.name == name))
}

/// Returns `true` if a name matches. A trailing `*` in the wanted name matches any rest.
pub(crate) fn name_matches(wanted: &str, name: &str) -> bool {
    wanted.strip_suffix('*').map_or(wanted == name, |start| name.starts_with(start))
}

fn metadata(args: &[&str]) -> Result<Vec<Package>> {
    let base = ["metadata", "--quiet", "--format-version", "1"];
    let json = process::capture(&mut process::cargo(base.iter().chain(args)))?;
    let metadata: Metadata =
        serde_json::from_str(&json).context("could not parse the output of `cargo metadata`")?;
    Ok(metadata.packages)
}
