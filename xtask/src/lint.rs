//! `lint`: runs clippy on all targets and features. Here a warning is an error, unlike during development.

use anyhow::Result;

use crate::process;

/// Fails on any warning.
pub(crate) fn run() -> Result<()> {
    process::run(&mut process::cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--keep-going",
        "--",
        "-D",
        "warnings",
    ]))
}
