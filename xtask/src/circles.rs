//! `circles`: no circle of imports has more than three files.
//!
//! Files that import each other in a circle can only be read together. A parent and its children may do so, but a longer
//! circle means that something stands in the wrong file.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::imports::Crate;
use crate::{tidy, workspace};

#[cfg(test)]
mod tests;

/// The maximum number of files in a circle.
const MAXIMUM: usize = 3;

type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns a complaint for every circle of more files.
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
        let circles = circles(&imports);
        complaints.extend(circles.iter().filter(|circle| circle.len() > MAXIMUM).map(|circle| {
            let lines = circle
                .iter()
                .map(|file| format!("\n  {file} -> {}", within(&imports, circle, file)));
            format!("a circle of {} files:{}", circle.len(), lines.collect::<String>())
        }));
    }
    Ok(complaints)
}

/// Returns the files of a circle that one of its files imports from.
fn within(imports: &Imports<'_>, circle: &BTreeSet<&str>, file: &str) -> String {
    let targets = imports.get(file).into_iter().flatten().filter(|target| circle.contains(*target));
    targets.copied().collect::<Vec<_>>().join(", ")
}

/// Returns the circles: the largest sets of at least two files that all reach each other.
fn circles<'a>(imports: &Imports<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (*file, reachable(imports, file))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let mut found: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for file in imports.keys() {
        let circle: BTreeSet<&str> = imports
            .keys()
            .copied()
            .filter(|other| reaches(file, other) && reaches(other, file))
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// Returns the files that imports lead to.
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
