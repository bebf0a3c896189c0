//! The list itself: what an entry may say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;
use serde::Deserialize;

/// Subjects that are built later. What is not one of them is tested or differs.
const LATER: &[&str] =
    &["cloudflare", "memory", "providers", "remote", "server", "tracing", "workspaces"];

/// A quote is for finding the place, not for reading.
const LONGEST_QUOTE: usize = 200;

/// One behaviour that a seed states.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The page's file name without its extension.
    pub seed: String,
    /// Stands exactly once in the page; white space counts as one space.
    pub quote: String,
    /// The tests that prove it, or prove the difference.
    #[serde(default)]
    pub scenarios: Vec<String>,
    /// Why ours does something else.
    pub differs: Option<String>,
    /// The subject that it is built with.
    pub later: Option<String>,
    /// What is still to be tested.
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

/// All entries by id; TOML refuses an id that is there twice.
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

    /// How many there are of each kind, and what is to do by subject, which is the first word of an id.
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

    /// Every entry that says too little, too much or what nobody knows.
    pub(super) fn check(&self) -> Vec<String> {
        let mut quoted = BTreeSet::new();
        let mut complaints = Vec::new();
        for (id, entry) in self.iter() {
            let mut complain = |what: &str| complaints.push(format!("{id}: {what}"));
            if !is_id(id) {
                complain("an id is lower-case words joined by dashes");
            }
            if entry.quote.trim().is_empty() || entry.quote.chars().count() > LONGEST_QUOTE {
                complain(&format!("a quote has between 1 and {LONGEST_QUOTE} characters"));
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

/// What became of the behaviour has to be said, and not twice.
fn check_answer(entry: &Entry, complain: &mut impl FnMut(&str)) {
    let Entry { scenarios, differs, later, todo, .. } = entry;
    let said = [differs, later, todo].into_iter().flatten();
    if said.clone().any(|it| it.trim().is_empty()) {
        complain("`differs`, `later` and `todo` are not empty");
    }
    let answers = said.count() + usize::from(!scenarios.is_empty());
    if answers == 0 {
        complain("give `scenarios`, `differs`, `later` or `todo`");
    }
    let Some(later) = later else { return };
    if answers > 1 {
        complain("`later` stands alone");
    }
    if !LATER.contains(&later.as_str()) {
        complain(&format!("`{later}` is not built later; there are: {}", LATER.join(", ")));
    }
}

fn is_id(text: &str) -> bool {
    let is_word = |it: &str| {
        !it.is_empty() && it.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    text.contains('-') && text.split('-').all(is_word)
}

fn list(counts: &BTreeMap<&str, usize>) -> String {
    let parts: Vec<String> =
        counts.iter().map(|(name, count)| format!(" {count} {name}")).collect();
    parts.join(",")
}
