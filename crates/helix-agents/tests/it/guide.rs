//! The guide: that its pages are complete, that their code cannot get around being run, and that the
//! pages on error codes are those of `docs/errors.toml`.

mod configuration;
mod errors;
mod pages;

use std::path::{Path, PathBuf};

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The text of a file of the repository.
#[track_caller]
fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
