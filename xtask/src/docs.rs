//! `docs`: checks links, and builds the rustdoc without warnings and the book.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::{process, report, tools};

mod links;

#[cfg(test)]
mod tests;

/// The folder of the book's pages.
const PAGES: &str = "docs/src";

/// Other pages that link to files of the repository.
const OTHERS: &[&str] = &["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"];

/// Checks the links and builds both. The book is written to `target/book`.
pub(crate) fn run() -> Result<()> {
    report::gate("links", complaints)?;
    // The documentation of programs has no readers. The example makes cargo select the same features of the dependencies
    // as `lint` does, so that cargo reuses what that gate has built.
    let targets = ["--lib", "--example", "readme"];
    let mut rustdoc = process::cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    rustdoc.args(targets);
    process::run(rustdoc.env("RUSTDOCFLAGS", "-D warnings"))?;
    book()
}

/// Rewrites the generated pages, by running the test that compares them.
pub(crate) fn write() -> Result<()> {
    let mut tests =
        process::cargo(["test", "--quiet", "--package", "helix-agents", "--test", "it"]);
    process::run(tests.args(["guide::errors"]).env("UPDATE_EXPECT", "1"))
}

fn book() -> Result<()> {
    if !Path::new("docs/book.toml").exists() {
        bail!("docs/book.toml is missing; the book is an mdBook in docs/");
    }
    tools::MDBOOK.ensure()?;
    // Versions of mdBook resolve relative folders differently.
    let folder = std::env::current_dir()?.join("target/book");
    process::run(process::program("mdbook", ["build", "docs", "--dest-dir"]).arg(folder))
}

/// Returns a complaint for every broken link.
fn complaints() -> Result<Vec<String>> {
    let mut pages = Vec::new();
    collect(Path::new(PAGES), &mut pages)?;
    collect(Path::new("docs/decisions"), &mut pages)?;
    pages.extend(OTHERS.iter().map(|path| (*path).to_owned()));
    pages.sort();
    let mut complaints = Vec::new();
    for page in &pages {
        complaints.extend(links::check(page, &read)?);
    }
    Ok(complaints)
}

fn collect(folder: &Path, pages: &mut Vec<String>) -> Result<()> {
    let entries =
        folder.read_dir().with_context(|| format!("could not read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Returns the text of a file, an empty text for a folder, or `None` if neither exists.
fn read(path: &str) -> Option<String> {
    if Path::new(path).is_dir() {
        return Some(String::new());
    }
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
