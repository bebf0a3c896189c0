//! The guide: all its pages are listed, all its code is run, and the pages on error codes match
//! `docs/errors.toml`.

mod configuration;
mod errors;
mod pages;

use std::path::{Path, PathBuf};

/// Returns the path of a file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Returns the text of a file of the repository.
#[track_caller]
fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
