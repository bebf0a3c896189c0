//! `fmt`: runs rustfmt on the whole workspace.

use anyhow::{Context as _, Result};

use crate::process;

/// Fails if rustfmt would change a file.
pub(crate) fn check() -> Result<()> {
    process::run(&mut process::cargo(["fmt", "--all", "--check"]))
        .context("not formatted; run `cargo xtask fmt --fix`")
}

/// Formats every file.
pub(crate) fn fix() -> Result<()> {
    process::run(&mut process::cargo(["fmt", "--all"]))
}
