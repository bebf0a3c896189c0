//! The lock file: digests of the seeds and quotes, which identify a quote without its seed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::entries::Entries;
use super::seeds::{Seeds, normalise, unknown};

const HEADER: &str = "# Written by `cargo xtask behaviour --write --seeds PATH`.\n\n";

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lock {
    /// The SHA-256 digests of the seeds by name, as `sha256sum` prints them.
    seeds: BTreeMap<String, String>,
    /// The digests of the quotes with their seeds, by the id of the entry.
    quotes: BTreeMap<String, String>,
}

impl Lock {
    pub(super) fn read(text: &str) -> Result<Self> {
        Ok(toml::from_str(text)?)
    }

    pub(super) fn text(&self) -> Result<String> {
        Ok(format!("{HEADER}{}", toml::to_string(self)?))
    }

    /// Returns the lock of these entries. Entries without a seed are omitted.
    pub(super) fn of(entries: &Entries, seeds: &Seeds) -> Self {
        let seeds = seeds.digests();
        let quotes = entries.iter().filter_map(|(id, entry)| {
            let seed = seeds.get(&entry.seed)?;
            Some((id.to_owned(), digest_in(seed, &entry.quote)))
        });
        Self { quotes: quotes.collect(), seeds }
    }

    /// Returns a complaint for every quote that differs from the one that was found in its seed.
    pub(super) fn check(&self, entries: &Entries) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut gone: BTreeSet<&str> = self.quotes.keys().map(String::as_str).collect();
        for (id, entry) in entries.iter() {
            gone.remove(id);
            let Some(seed) = self.seeds.get(&entry.seed) else {
                complaints.push(unknown(id, &entry.seed, self.seeds.keys()));
                continue;
            };
            if self.quotes.get(id) != Some(&digest_in(seed, &entry.quote)) {
                complaints.push(format!(
                    "{id}: new or changed since its quote was checked; if you have the seeds, \
                     run `cargo xtask behaviour --write --seeds PATH`"
                ));
            }
        }
        complaints
            .extend(gone.into_iter().map(|id| format!("{id}: only in the lock; add --write")));
        complaints
    }
}

fn digest_in(seed: &str, quote: &str) -> String {
    digest(&format!("{seed}\n{}", normalise(quote)))
}

/// Returns the SHA-256 digest in hexadecimal.
pub(super) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
