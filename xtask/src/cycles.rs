//! `cycles`: no import cycle spans more than three files.
//!
//! Files in an import cycle cannot be understood separately. Imports from an ancestor module are not counted, because a
//! module and its children are one subject. A longer cycle usually means that an item is in the wrong file.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::imports::Crate;
use crate::{tidy, workspace};

#[cfg(test)]
mod tests;

/// The maximum number of files in a cycle.
const MAXIMUM: usize = 3;

type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns a complaint for every cycle of more than [`MAXIMUM`] files.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let files = tidy::files()?;
    let root = std::env::current_dir()?;
    let mut complaints = Vec::new();
    for member in workspace::members()? {
        let folder =
            member.manifest_path.parent().and_then(|folder| folder.strip_prefix(&root).ok());
        let Some(folder) = folder.and_then(|folder| folder.to_str()) else { continue };
        let folder = format!("{folder}/src");
        let texts = files.iter().map(|file| (file.path.as_str(), file.text.as_str()));
        let own = Crate::read(&folder, texts.filter(|(path, _)| path.starts_with(&folder)))?;
        let imports = own.imports();
        let cycles = cycles(&imports);
        complaints.extend(cycles.iter().filter(|cycle| cycle.len() > MAXIMUM).map(|cycle| {
            let lines =
                cycle.iter().map(|file| format!("\n  {file} -> {}", within(&imports, cycle, file)));
            format!("a cycle of {} files:{}", cycle.len(), lines.collect::<String>())
        }));
    }
    Ok(complaints)
}

/// Returns the files of a cycle that one of its files imports from.
fn within(imports: &Imports<'_>, cycle: &BTreeSet<&str>, file: &str) -> String {
    let targets = imports.get(file).into_iter().flatten().filter(|target| cycle.contains(*target));
    targets.copied().collect::<Vec<_>>().join(", ")
}

/// Returns the strongly connected components with at least two files.
fn cycles<'a>(imports: &Imports<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (*file, reachable(imports, file))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let mut found: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for file in imports.keys() {
        let cycle: BTreeSet<&str> = imports
            .keys()
            .copied()
            .filter(|other| reaches(file, other) && reaches(other, file))
            .collect();
        if cycle.len() > 1 {
            found.insert(cycle);
        }
    }
    found.into_iter().collect()
}

/// Returns the files that are reachable from a file through imports.
fn reachable<'a>(imports: &Imports<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = imports.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if found.insert(file) {
            open.extend(imports.get(file).into_iter().flatten());
        }
    }
    found
}
