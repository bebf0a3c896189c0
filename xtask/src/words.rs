//! `words`: the language of documentation, comments and messages. The rules are those of CONTRIBUTING.md; the list of
//! denied words and of terms with a better name is in `words.toml`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::tidy;

mod extract;

#[cfg(test)]
mod tests;

/// The list of words, relative to the root of the repository.
const LIST: &str = "xtask/words.toml";

/// The largest share of doc comments that may open with an interrogative, in percent.
const MAX_INTERROGATIVES: usize = 1;

/// Words that open a relative clause where a noun phrase belongs. "Whether" is the usual opening for a `bool`.
const INTERROGATIVES: &[&str] = &["What", "How", "Where", "Who", "Why", "Which", "When"];

/// The file `words.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Denied words and phrases, and what to write instead.
    denied: BTreeMap<String, String>,
    /// Folders and files that are not checked, with the reason.
    unchecked: BTreeMap<String, String>,
    /// Lines that may use a denied word: `path: text of the line`, with the reason.
    #[serde(default)]
    exceptions: BTreeMap<String, String>,
}

/// One line of text that people read.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    /// Its number, from 1.
    number: usize,
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The first line of an item's documentation. `is_only` if the documentation has no other line.
    Doc { is_only: bool },
    /// Any other prose.
    Prose,
}

/// Every breach of the rules of language.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(LIST).with_context(|| format!("could not read {LIST}"))?;
    let list: List = toml::from_str(&text).with_context(|| format!("could not parse {LIST}"))?;
    let files = tidy::files()?;
    let files = files.iter().map(|file| (file.path.as_str(), file.text.as_str()));
    Ok(check(&list, files))
}

fn check<'a>(list: &List, files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut complaints = Vec::new();
    let (mut docs, mut interrogatives) = (0, Vec::new());
    let mut used = Vec::new();
    let is_checked = |path: &str| {
        path != LIST && !list.unchecked.keys().any(|prefix| path.starts_with(&**prefix))
    };
    for (path, text) in files.filter(|(path, _)| is_checked(path)) {
        for line in extract::lines(path, text) {
            for (word, instead) in &list.denied {
                if !tidy::has_word(&line.text.to_lowercase(), word) {
                    continue;
                }
                let exception = format!("{path}: {}", line.text.trim());
                if list.exceptions.contains_key(&exception) {
                    used.push(exception);
                } else {
                    let number = line.number;
                    complaints.push(format!("{path}:{number}: `{word}`: write {instead}"));
                }
            }
            let Kind::Doc { is_only } = line.kind else { continue };
            docs += 1;
            let mut words = line.text.split_whitespace();
            let first = words.next().unwrap_or_default();
            if is_only && words.next().is_none() && !first.contains(['`', '[', '<']) {
                complaints.push(format!("{path}:{}: one word documents nothing", line.number));
            }
            if INTERROGATIVES.contains(&first) {
                interrogatives.push(format!("{path}:{}: opens with `{first}`", line.number));
            }
        }
    }
    if interrogatives.len() * 100 > docs * MAX_INTERROGATIVES {
        complaints.push(format!(
            "{} of {docs} doc comments open with an interrogative; at most {MAX_INTERROGATIVES} % may",
            interrogatives.len()
        ));
        complaints.extend(interrogatives);
    }
    let stale = list.exceptions.keys().filter(|exception| !used.contains(exception));
    complaints
        .extend(stale.map(|exception| format!("{LIST}: the exception `{exception}` is not used")));
    complaints
}
