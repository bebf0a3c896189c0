//! Rules about single files and their lines.

use super::File;

/// The maximum length of a file. A longer file probably has a second subject.
const MAX_LINES: usize = 600;

/// Files that may be longer, each with the reason. The list may only shrink.
const LONG_FILES: &[(&str, &str)] = &[];

/// Rust files that need no opening documentation: build scripts, and programs that must not compile.
const UNDOCUMENTED: &[&str] = &["build.rs", "/tests/ui/"];

// The words are concatenated, so that this file does not violate its own rules.
pub(super) const MARKERS: &[&str] =
    &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];
pub(super) const MACHINE_PATHS: &[&str] =
    &[concat!("/", "root"), concat!("/", "work"), concat!("/", "home")];
pub(super) const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("npmjs", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
];

/// Returns every violation in one file.
pub(super) fn check(file: &File) -> Vec<String> {
    let File { path, text } = file;
    let mut complaints = Vec::new();
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{path}: does not end with a newline"));
    }
    if path == "Cargo.lock" {
        return complaints;
    }
    if is_rust(path) {
        complaints.extend(check_rust_file(path, text));
    }
    for (number, line) in (1..).zip(text.lines()) {
        let found = check_line(line)
            .into_iter()
            .chain(is_rust(path).then(|| check_rust_line(line)).flatten());
        complaints.extend(found.map(|complaint| format!("{path}:{number}: {complaint}")));
    }
    complaints
}

/// Returns a complaint for every entry of the exception list that is not needed.
pub(super) fn check_stale_exceptions(files: &[File]) -> Vec<String> {
    let is_long = |path: &str| {
        files.iter().any(|file| file.path == path && file.text.lines().count() > MAX_LINES)
    };
    LONG_FILES
        .iter()
        .filter(|(path, _)| !is_long(path))
        .map(|(path, _)| {
            format!("{path}: no longer over {MAX_LINES} lines; remove it from LONG_FILES in xtask")
        })
        .collect()
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn check_rust_file(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // A crate's documentation may be its README.
    let documented = first.starts_with("//!") || first.starts_with("#![doc = include_str!");
    if !documented && !UNDOCUMENTED.iter().any(|exception| path.contains(exception)) {
        complaints.push(format!("{path}: does not start with `//!`; describe the file's purpose"));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES && !LONG_FILES.iter().any(|(long, _)| *long == path) {
        complaints.push(format!(
            "{path}: has {lines} lines, over {MAX_LINES}; split off its second subject"
        ));
    }
    complaints
}

fn check_line(line: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if line.ends_with([' ', '\t']) {
        complaints.push("trailing space".to_owned());
    }
    for marker in MARKERS.iter().filter(|marker| has_word(line, marker)) {
        complaints.push(format!("`{marker}`; do the work, or document where it is planned"));
    }
    for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
        complaints.push(format!("`{path}` is a path of one machine"));
    }
    for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(**host)) {
        complaints.push(format!(
            "`{host}` names a package registry; tools have their own settings for it"
        ));
    }
    complaints
}

fn check_rust_line(line: &str) -> Option<String> {
    let code = line.trim_start();
    if code.starts_with("mod tests {") {
        Some(
            "inline tests; write `#[cfg(test)] mod tests;` and move them to their own file"
                .to_owned(),
        )
    } else if code.starts_with(concat!("#[ig", "nore")) {
        Some("an ignored test; run it or delete it".to_owned())
    } else {
        None
    }
}

/// Returns `true` if the line has this word or phrase, not as a part of another word.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(start, _)| {
        let (before, rest) = line.split_at(start);
        let after = rest.strip_prefix(word).unwrap_or_default();
        !before.ends_with(part_of_word) && !after.starts_with(part_of_word)
    })
}

/// Returns `true` if the line has this path from the root of the file system. The middle of another path or of an
/// address does not count.
fn has_path(line: &str, path: &str) -> bool {
    let opens = |letter: char| letter.is_whitespace() || "\"'`(=:,[".contains(letter);
    let continues = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    line.match_indices(path).any(|(start, _)| {
        let (before, rest) = line.split_at(start);
        let after = rest.strip_prefix(path).unwrap_or_default();
        (before.is_empty() || before.ends_with(opens)) && !after.starts_with(continues)
    })
}
