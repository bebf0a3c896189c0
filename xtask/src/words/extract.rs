//! Finds the prose in Rust sources, Markdown pages and manifests.

use super::{Kind, Line};

/// The lines of prose of a file. Code and recorded data are left out.
pub(super) fn lines(path: &str, text: &str) -> Vec<Line> {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => rust(text),
        Some("md") => markdown(text),
        Some("toml" | "sql" | "lua" | "sh") => comments(text),
        _ => Vec::new(),
    }
}

/// Comments and string literals, line by line. Code in documentation is skipped, as is code in backticks.
fn rust(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let (mut in_code, mut previous) = (false, false);
    let all: Vec<&str> = text.lines().collect();
    for (index, line) in all.iter().enumerate() {
        let trimmed = line.trim_start();
        let doc = ["///", "//!"].iter().find_map(|marker| trimmed.strip_prefix(marker));
        let Some(doc) = doc else {
            (in_code, previous) = (false, false);
            let prose = match trimmed.find("//") {
                Some(0) => trimmed.trim_start_matches('/').to_owned(),
                _ => literals(trimmed),
            };
            push(&mut lines, index, &prose, Kind::Prose);
            continue;
        };
        if doc.trim_start().starts_with("```") {
            in_code = !in_code;
            previous = true;
            continue;
        }
        if !in_code {
            let next = all.get(index + 1).map_or("", |next| next.trim_start());
            let is_only = !next.starts_with(&trimmed[..3]);
            let kind = if previous { Kind::Prose } else { Kind::Doc { is_only } };
            push(&mut lines, index, doc, kind);
        }
        previous = true;
    }
    lines
}

/// The contents of the string literals of a line of code that read like a sentence.
fn literals(code: &str) -> String {
    let parts = code.split('"').skip(1).step_by(2);
    parts.filter(|part| part.contains(' ')).collect::<Vec<_>>().join(" ")
}

/// All lines but those of code blocks and tables of figures.
fn markdown(text: &str) -> Vec<Line> {
    let (mut lines, mut in_code) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            push(&mut lines, index, line, Kind::Prose);
        }
    }
    lines
}

/// Comments that start with `#` or `--`.
fn comments(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let comment = ["#", "--"].iter().filter_map(|marker| line.split_once(marker)).next();
        if let Some((_, comment)) = comment {
            push(&mut lines, index, comment, Kind::Prose);
        }
    }
    lines
}

fn push(lines: &mut Vec<Line>, index: usize, text: &str, kind: Kind) {
    // Names in backticks are code: they are judged where they are defined.
    let text: String = text.split('`').step_by(2).collect::<Vec<_>>().join("``");
    if !text.trim().is_empty() {
        lines.push(Line { number: index + 1, text, kind });
    }
}
