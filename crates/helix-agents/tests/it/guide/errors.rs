//! The pages on error codes, generated from `ErrorCode`, its documentation, and `docs/errors.toml`.
//! `cargo xtask docs --write` rewrites them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use helix_agents::error::{ErrorCode, ErrorKind};
use serde::Deserialize;

use super::{read, repository};

/// The guide's entry for one error code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    happened: String,
    todo: String,
    /// An example of the error message, with its variable parts between « and ».
    example: String,
    see: Vec<String>,
}

fn entries() -> BTreeMap<String, Entry> {
    toml::from_str(&read("docs/errors.toml")).unwrap()
}

/// Returns the first sentence of a code's documentation.
fn summary(code: ErrorCode) -> String {
    let source = read("crates/core/src/contracts/error.rs");
    let name = format!("= \"{code}\",");
    let (before, _) = source.split_once(&name).unwrap();
    let docs = before.lines().rev().skip(1).map_while(|line| line.trim().strip_prefix("///"));
    let docs: Vec<&str> = docs.map(str::trim).collect();
    assert!(!docs.is_empty(), "{code} has no documentation");
    docs.into_iter().rev().collect::<Vec<_>>().join(" ")
}

fn kind_name(kind: ErrorKind) -> String {
    serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned()
}

/// Returns what a caller can do about a kind of error.
fn reaction(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidInput => "change the input, the definition or the configuration",
        ErrorKind::NotFound => "check the name or id",
        ErrorKind::Conflict => "read the current state and decide again",
        ErrorKind::Superseded => "stop: another process continues the run",
        ErrorKind::Unsupported => "choose another backend, model or version",
        ErrorKind::Unauthorized => "check the key",
        ErrorKind::RateLimited => "retry later",
        ErrorKind::Unavailable => "retry; check that the other side is running",
        ErrorKind::LimitExceeded => "raise the limit or request less",
        ErrorKind::Cancelled => "do nothing: the operation was cancelled or skipped",
        ErrorKind::Corrupt => "keep the data unchanged and inspect it",
        ErrorKind::Failed => "read the message",
        ErrorKind::Internal => "correct your code if the message names it; otherwise report a bug",
        other => panic!("{other:?} is new: add what a caller can do about it"),
    }
}

fn title(page: &str) -> String {
    let text = read(&format!("docs/src/{page}"));
    text.lines().next().unwrap().trim_start_matches("# ").to_owned()
}

fn page(code: ErrorCode, entry: &Entry) -> String {
    let kind = code.kind();
    let retry = match kind.is_retryable() {
        true => "A retry of the same operation may succeed.",
        false => "A retry of the same operation does not help.",
    };
    let example = entry.example.replace(['«', '»'], "");
    let see: Vec<_> =
        entry.see.iter().map(|page| format!("[{}](../{page})", title(page))).collect();
    format!(
        "# `{code}`\n\n{summary}\n\n\
         Kind: [`{kind}`](../errors.md#kinds), so {reaction}. {retry}\n\n\
         ## What happened\n\n{happened}\n\n\
         ## What to do\n\n{todo}\n\n\
         ## Example\n\n```text\n{example}\n```\n\n\
         See also: {see}\n",
        summary = summary(code),
        kind = kind_name(kind),
        reaction = reaction(kind),
        happened = entry.happened.trim(),
        todo = entry.todo.trim(),
        see = see.join(", "),
    )
}

/// Returns all kinds of error codes, in the order of the codes.
fn kinds() -> Vec<ErrorKind> {
    let mut kinds = Vec::new();
    for kind in ErrorCode::ALL.iter().map(|code| code.kind()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Returns the generated part of the overview page.
fn overview() -> String {
    let mut text = "## Kinds\n\n| kind | what to do |\n|---|---|\n".to_owned();
    for kind in kinds() {
        writeln!(text, "| `{}` | {} |", kind_name(kind), reaction(kind)).unwrap();
    }
    text.push_str("\n## Codes\n\n| code | kind | |\n|---|---|---|\n");
    for code in ErrorCode::ALL.iter().copied() {
        let (kind, summary) = (kind_name(code.kind()), summary(code));
        writeln!(text, "| [`{code}`](errors/{code}.md) | `{kind}` | {summary} |").unwrap();
    }
    text
}

#[test]
fn there_is_an_entry_for_every_code_and_no_other() {
    let mut codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(entries().keys().collect::<Vec<_>>(), codes);
}

#[test]
fn the_pages_are_current() {
    let entries = entries();
    for code in ErrorCode::ALL.iter().copied() {
        let path = repository(&format!("docs/src/errors/{code}.md"));
        expect_file![path].assert_eq(&page(code, &entries[code.as_str()]));
    }
}

#[test]
fn the_overview_is_current() {
    let text = read("docs/src/errors.md");
    let (own, _) = text.split_once("## Kinds\n").unwrap();
    expect_file![repository("docs/src/errors.md")].assert_eq(&format!("{own}{}", overview()));
}

#[test]
fn the_summary_lists_the_pages_in_order() {
    let text = read("docs/src/SUMMARY.md");
    let is_own = |line: &&str| !line.starts_with("  * [`");
    let mut lines: Vec<String> = text.lines().filter(is_own).map(str::to_owned).collect();
    let overview = lines.iter().position(|line| line.contains("(errors.md)")).unwrap();
    let pages = ErrorCode::ALL.iter().map(|code| format!("  * [`{code}`](errors/{code}.md)"));
    lines.splice(overview + 1..overview + 1, pages);
    let wanted = lines.join("\n") + "\n";
    expect_file![repository("docs/src/SUMMARY.md")].assert_eq(&wanted);
}

/// Collects the text of all source files, with continued string literals joined.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            let mut lines = source.lines();
            while let Some(line) = lines.next() {
                let mut line = line.to_owned();
                while line.ends_with('\\') {
                    line.pop();
                    line.push_str(lines.next().unwrap_or_default().trim_start());
                }
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
}

/// Returns the fixed parts of an example.
fn fixed_parts(example: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = example;
    loop {
        let (fixed, variable) = rest.split_once('«').unwrap_or((rest, ""));
        parts.extend(fixed.split("; ").map(|part| {
            // A context entry is `, key=` in the example and `with_context("key"` in the code.
            let key = part.trim_start_matches(", ").strip_suffix('=');
            key.map_or_else(|| part.to_owned(), |key| format!("with_context(\"{key}\""))
        }));
        match variable.split_once('»') {
            Some((_, more)) => rest = more,
            None => return parts,
        }
    }
}

#[test]
fn examples_match_the_code() {
    let mut text = String::new();
    for name in [
        "core",
        "llm",
        "client",
        "runtime",
        "runtime-local",
        "server",
        "store-memory",
        "store-postgres",
        "store-sqlite",
        "telemetry",
    ] {
        sources(&repository(&format!("crates/{name}/src")), &mut text);
    }
    let mut problems = Vec::new();
    for (code, entry) in entries() {
        let (head, rest) = entry.example.split_once(": ").unwrap();
        let (named, operation) = head.split_once(" in ").unwrap_or((head, ""));
        assert_eq!(named, code);
        let mut parts: Vec<String> = fixed_parts(rest);
        parts.push(operation.to_owned());
        problems.extend(
            parts
                .into_iter()
                .filter(|part| !text.contains(part))
                .map(|part| format!("{code}: no code contains `{part}`")),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
