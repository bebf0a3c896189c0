//! The entries of the list, and their rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;
use serde::Deserialize;

/// Subjects that will be built later. Every other behaviour is tested or differs.
const LATER: &[&str] = &["cloudflare", "memory", "remote", "server", "tracing", "workspaces"];

/// The maximum length of a quote. A quote locates a passage; it does not replace it.
const MAX_QUOTE: usize = 200;

/// One behaviour that a seed describes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The page's file name without its extension.
    pub seed: String,
    /// Text that occurs exactly once in the page. Any white space counts as one space.
    pub quote: String,
    /// The tests that prove the behaviour, or the difference.
    #[serde(default)]
    pub scenarios: Vec<String>,
    /// The reason why our behaviour differs.
    pub differs: Option<String>,
    /// The subject that the behaviour is built with.
    pub later: Option<String>,
    /// The missing test.
    pub todo: Option<String>,
}

impl Entry {
    fn kind(&self) -> &'static str {
        match self {
            Self { todo: Some(_), .. } => "to do",
            Self { later: Some(_), .. } => "later",
            Self { differs: Some(_), .. } => "different",
            _ => "proven",
        }
    }
}

/// All entries by id. TOML rejects duplicate ids.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Entries(BTreeMap<String, Entry>);

impl Entries {
    pub(super) fn read(text: &str) -> Result<Self> {
        Ok(toml::from_str(text)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(id, entry)| (id.as_str(), entry))
    }

    /// Returns the number of entries of each kind, and the open ones by subject. The subject is the first word of an
    /// id.
    pub(super) fn count(&self) -> String {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        for (id, entry) in self.iter() {
            *kinds.entry(entry.kind()).or_default() += 1;
            if entry.todo.is_some() {
                *open.entry(id.split('-').next().unwrap_or(id)).or_default() += 1;
            }
        }
        let mut text = format!("{} behaviours:{}", self.0.len(), list(&kinds));
        if !open.is_empty() {
            let _ = write!(text, "\nto do:{}", list(&open));
        }
        text
    }

    /// Returns a complaint for every incomplete, contradictory or unknown statement.
    pub(super) fn check(&self) -> Vec<String> {
        let mut quoted = BTreeSet::new();
        let mut complaints = Vec::new();
        for (id, entry) in self.iter() {
            let mut complain = |what: &str| complaints.push(format!("{id}: {what}"));
            if !is_id(id) {
                complain("an id must be lower-case words joined by dashes");
            }
            if entry.quote.trim().is_empty() || entry.quote.chars().count() > MAX_QUOTE {
                complain(&format!("a quote must have between 1 and {MAX_QUOTE} characters"));
            }
            if !quoted.insert((&entry.seed, &entry.quote)) {
                complain("another entry has the same quote");
            }
            check_answer(entry, &mut complain);
            if let Some(todo) = &entry.todo {
                complain(&format!("to be tested: {todo}"));
            }
        }
        complaints
    }
}

/// Checks that an entry states exactly one outcome.
fn check_answer(entry: &Entry, complain: &mut impl FnMut(&str)) {
    let Entry { scenarios, differs, later, todo, .. } = entry;
    let reasons = [differs, later, todo].into_iter().flatten();
    if reasons.clone().any(|text| text.trim().is_empty()) {
        complain("`differs`, `later` and `todo` must not be empty");
    }
    let answers = reasons.count() + usize::from(!scenarios.is_empty());
    if answers == 0 {
        complain("give `scenarios`, `differs`, `later` or `todo`");
    }
    let Some(later) = later else { return };
    if answers > 1 {
        complain("`later` excludes the other keys");
    }
    if !LATER.contains(&later.as_str()) {
        complain(&format!("`{later}` is not built later; known subjects: {}", LATER.join(", ")));
    }
}

fn is_id(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    };
    text.contains('-') && text.split('-').all(is_word)
}

fn list(counts: &BTreeMap<&str, usize>) -> String {
    let parts: Vec<String> =
        counts.iter().map(|(name, count)| format!(" {count} {name}")).collect();
    parts.join(",")
}
