//! `lint`: clippy over all targets and features; a warning is an error here, though not while you work.

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
