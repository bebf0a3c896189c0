//! `docs`: rustdoc without warnings, and the book.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{process, tools};

/// Builds both; the book goes to `target/book`.
pub(crate) fn run() -> Result<()> {
    let mut rustdoc = process::cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    process::run(rustdoc.env("RUSTDOCFLAGS", "-D warnings"))?;
    book()
}

fn book() -> Result<()> {
    if !Path::new("docs/book.toml").exists() {
        bail!("docs/book.toml is missing; the book is an mdBook in docs/");
    }
    tools::MDBOOK.ensure()?;
    // Versions of mdBook differ in what a relative folder is relative to.
    let folder = std::env::current_dir()?.join("target/book");
    process::run(process::program("mdbook", ["build", "docs", "--dest-dir"]).arg(folder))
}
