//! A small Rust project.

use std::fs;
use std::path::{Path, PathBuf};

use helix_agents::error::{Error, ErrorCode, Result};

use super::draft::Draft;
use super::name;

const MANIFEST: &str = include_str!("../../templates/rust/Cargo.toml.in");
const MAIN: &str = include_str!("../../templates/rust/main.rs");
const README: &str = include_str!("../../templates/rust/README.md");
const GITIGNORE: &str = include_str!("../../templates/rust/gitignore");

/// The checkout that this program was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The library, from the root of a checkout.
const LIBRARY: &str = "crates/helix-agents";

/// The files of a project in `folder`, under this name or the one that the folder suggests, on the
/// library of this checkout or the one that the program was built from.
///
/// # Errors
/// [`ErrorCode::InputInvalid`] if there is no good name, or no checkout.
pub(super) fn draft(folder: &Path, name: Option<&str>, checkout: Option<&Path>) -> Result<Draft> {
    let name = package_name(folder, name)?;
    let library = library(checkout)?;
    let path = library.to_str().ok_or_else(|| {
        let message = "the path of the checkout is no Unicode, which Cargo.toml is";
        Error::new(ErrorCode::InputInvalid, message).with_context("path", library.display())
    })?;
    let fill = |template: &str| {
        template
            .replace("{{name}}", &name)
            .replace("{{rust_version}}", env!("CARGO_PKG_RUST_VERSION"))
            .replace("{{helix_agents}}", &toml::Value::from(path).to_string())
    };
    let mut draft = Draft::default();
    draft.add(folder.join("Cargo.toml"), fill(MANIFEST));
    draft.add(folder.join("src/main.rs"), fill(MAIN));
    draft.add(folder.join("README.md"), fill(README));
    draft.add(folder.join(".gitignore"), GITIGNORE.to_owned());
    // With the versions that the library is tested with. Cargo drops what the project does not
    // need when it first builds.
    let lock = library.join("../..").join("Cargo.lock");
    if let Ok(lock) = fs::read_to_string(lock) {
        draft.add(folder.join("Cargo.lock"), lock);
    }
    Ok(draft)
}

fn package_name(folder: &Path, name: Option<&str>) -> Result<String> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => name::of_folder(&absolute(folder)),
    };
    match name::problem_of(&name) {
        None => Ok(name),
        Some(problem) => {
            let message = format!(
                "`{name}` cannot be the name of the package: {problem}; give one with --name"
            );
            Err(Error::new(ErrorCode::InputInvalid, message))
        }
    }
}

/// The folder of the library: nothing is published yet, so there has to be a checkout.
fn library(checkout: Option<&Path>) -> Result<PathBuf> {
    let root = checkout.unwrap_or(Path::new(BUILT_FROM));
    // Whoever names the library itself means the same.
    let places = [root.join(LIBRARY), root.to_owned()];
    let found = places.iter().find(|place| is_library(place));
    let library = found.and_then(|place| place.canonicalize().ok());
    library.ok_or_else(|| {
        let message = match checkout {
            Some(_) => "there is no checkout of Helix Agents at --helix-agents",
            None => {
                "the checkout of Helix Agents that this program was built from is gone; name one \
                 with --helix-agents PATH"
            }
        };
        Error::new(ErrorCode::InputInvalid, message).with_context("path", root.display())
    })
}

fn is_library(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let manifest: Option<toml::Table> = manifest.parse().ok();
    let name = manifest.as_ref().and_then(|it| it.get("package")?.get("name")?.as_str());
    name == Some("helix-agents")
}

/// The path with all its names, so that `.` has one too.
fn absolute(folder: &Path) -> PathBuf {
    let absolute = folder.canonicalize().or_else(|_| std::path::absolute(folder));
    absolute.unwrap_or_else(|_| folder.to_owned())
}
