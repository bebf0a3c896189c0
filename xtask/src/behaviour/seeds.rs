//! The reference pages, and the check that each quote occurs in its page.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::entries::{Entries, Entry};
use super::lock::digest;
use super::read;

/// The pages by name.
pub(super) struct Seeds(BTreeMap<String, Page>);

struct Page {
    /// The text, with each run of white space replaced by one space.
    text: String,
    /// The digest of the original page.
    digest: String,
}

impl Seeds {
    /// Reads the pages of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let files = folder
            .read_dir()
            .with_context(|| format!("could not read the seeds in {}", folder.display()))?;
        let mut pages = Vec::new();
        for file in files {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "txt") {
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

    /// Returns the digests of the pages by name.
    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, page)| (name.clone(), page.digest.clone())).collect()
    }

    /// Returns a complaint for every quote that does not occur exactly once in its page.
    pub(super) fn check(&self, entries: &Entries) -> Vec<String> {
        let check = |(id, entry): (&str, &Entry)| {
            let Some(page) = self.0.get(&entry.seed) else {
                return Some(unknown(id, &entry.seed, self.0.keys()));
            };
            match page.text.matches(&normalise(&entry.quote)).count() {
                1 => None,
                0 => Some(format!("{id}: the quote does not occur in {}", entry.seed)),
                n => Some(format!("{id}: the quote occurs {n} times in {}", entry.seed)),
            }
        };
        entries.iter().filter_map(check).collect()
    }
}

/// Returns the complaint about an unknown seed.
pub(super) fn unknown<'a>(id: &str, seed: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    format!("{id}: no seed is called {seed}; known seeds: {}", known.join(", "))
}

/// Replaces each run of white space by one space, because pages are wrapped differently.
pub(super) fn normalise(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
