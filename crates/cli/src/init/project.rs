//! The Rust project that `helix init` creates.

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

/// The path of the library in a checkout.
const LIBRARY: &str = "crates/helix-agents";

/// Creates the files of a project in `folder`. The default name is derived from the folder, and the
/// default checkout is the one that this program was built from.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if the name is not valid or the checkout does not exist.
pub(super) fn draft(folder: &Path, name: Option<&str>, checkout: Option<&Path>) -> Result<Draft> {
    let name = package_name(folder, name)?;
    let library = library(checkout)?;
    let path = library.to_str().ok_or_else(|| {
        let message =
            "the path of the checkout is not valid UTF-8, so Cargo.toml cannot contain it";
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
    // Uses the dependency versions that the library is tested with. Cargo removes unused packages in
    // the first build.
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
            let message =
                format!("`{name}` is not a valid package name: {problem}; choose one with --name");
            Err(Error::new(ErrorCode::InputInvalid, message))
        }
    }
}

/// The folder of the library in a checkout. A checkout is required, because the library is not published
/// yet.
fn library(checkout: Option<&Path>) -> Result<PathBuf> {
    let root = checkout.unwrap_or(Path::new(BUILT_FROM));
    // The path of the library itself is accepted, too.
    let places = [root.join(LIBRARY), root.to_owned()];
    let found = places.iter().find(|place| is_library(place));
    let library = found.and_then(|place| place.canonicalize().ok());
    library.ok_or_else(|| {
        let message = match checkout {
            Some(_) => "the path of --helix-agents is not a checkout of Helix Agents",
            None => {
                "the checkout of Helix Agents that this program was built from does not exist any \
                 more; pass one with --helix-agents PATH"
            }
        };
        Error::new(ErrorCode::InputInvalid, message).with_context("path", root.display())
    })
}

fn is_library(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let manifest: Option<toml::Table> = manifest.parse().ok();
    let name =
        manifest.as_ref().and_then(|manifest| manifest.get("package")?.get("name")?.as_str());
    name == Some("helix-agents")
}

/// The absolute path, so that `.` has a folder name, too.
fn absolute(folder: &Path) -> PathBuf {
    let absolute = folder.canonicalize().or_else(|_| std::path::absolute(folder));
    absolute.unwrap_or_else(|_| folder.to_owned())
}
