//! Checks the links between the repository's pages: the file must exist, and the heading in it.

use anyhow::{Result, bail};

/// A link in a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

/// Returns a complaint for every broken link of a page. `read` returns the text of a file, if it exists.
pub(super) fn check(page: &str, read: &dyn Fn(&str) -> Option<String>) -> Result<Vec<String>> {
    let Some(text) = read(page) else {
        bail!("{page} is missing");
    };
    let mut complaints = Vec::new();
    for Link { line, target } in links(&text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, heading) = match target.split_once('#') {
            Some((path, heading)) => (path, Some(heading)),
            None => (target.as_str(), None),
        };
        let file = if path.is_empty() { page.to_owned() } else { resolve(page, path) };
        let Some(found) = read(&file) else {
            complaints.push(format!("{page}:{line}: `{target}` names no file"));
            continue;
        };
        if let Some(heading) = heading
            && !headings(&found).iter().any(|id| id == heading)
        {
            complaints.push(format!("{page}:{line}: `{target}` names no heading of {file}"));
        }
    }
    Ok(complaints)
}

/// Returns the links of a text, except those in code.
pub(super) fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, prose) in prose(text) {
        let prose = without_code(prose);
        let mut rest = prose.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, after)) = after.split_once(')') else { break };
            links.push(Link { line, target: target.trim().to_owned() });
            rest = after;
        }
    }
    links
}

/// Returns the anchors of a text's headings, as mdBook and code hosts generate them.
pub(super) fn headings(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| id(line.trim_start_matches('#').trim())).collect()
}

fn id(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Returns the lines outside of fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Returns a line without its inline code. A link whose text is code remains.
fn without_code(line: &str) -> String {
    line.split('`').enumerate().filter(|(index, _)| index % 2 == 0).map(|(_, part)| part).collect()
}

/// Resolves a path relative to a page's folder, and returns it relative to the root.
fn resolve(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
