//! The reference pages, and whether a quote stands in one.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::entries::{Entries, Entry};
use super::lock::digest;
use super::read;

/// The pages by name.
pub(super) struct Seeds(BTreeMap<String, Page>);

struct Page {
    /// With white space made one space.
    text: String,
    /// Of the page as it is.
    digest: String,
}

impl Seeds {
    /// The pages of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let files = folder
            .read_dir()
            .with_context(|| format!("could not read the seeds in {}", folder.display()))?;
        let mut pages = Vec::new();
        for file in files {
            let path = file?.path();
            if path.extension().is_some_and(|it| it == "txt") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                pages.push((name, read(&path)?));
            }
        }
        if pages.is_empty() {
            bail!("there is no seed (*.txt) in {}", folder.display());
        }
        Ok(Self::of(pages))
    }

    pub(super) fn of(pages: impl IntoIterator<Item = (String, String)>) -> Self {
        let page = |text: &str| Page { text: normalise(text), digest: digest(text) };
        Self(pages.into_iter().map(|(name, text)| (name, page(&text))).collect())
    }

    /// The digests of the pages by their names.
    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, page)| (name.clone(), page.digest.clone())).collect()
    }

    /// Every quote that is not in its page exactly once.
    pub(super) fn check(&self, entries: &Entries) -> Vec<String> {
        let check = |(id, entry): (&str, &Entry)| {
            let Some(page) = self.0.get(&entry.seed) else {
                return Some(unknown(id, &entry.seed, self.0.keys()));
            };
            match page.text.matches(&normalise(&entry.quote)).count() {
                1 => None,
                0 => Some(format!("{id}: the quote does not stand in {}", entry.seed)),
                n => Some(format!("{id}: the quote stands in {} {n} times", entry.seed)),
            }
        };
        entries.iter().filter_map(check).collect()
    }
}

/// The complaint about a seed that does not exist.
pub(super) fn unknown<'a>(id: &str, seed: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    format!("{id}: no seed is called {seed}; there are: {}", known.join(", "))
}

/// Runs of white space become one space: pages are wrapped in many ways.
pub(super) fn normalise(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
