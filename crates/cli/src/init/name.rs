//! Names of packages and agents.

use std::path::Path;

/// Names that cargo or the dependencies of the project already use.
const TAKEN: [&str; 17] = [
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "helix-agents",
    "helix_agents",
    "incremental",
    "main",
    "proc-macro",
    "proc_macro",
    "schemars",
    "serde",
    "std",
    "target",
    "test",
    "tokio",
];

/// Rust keywords, which cannot be crate names.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The maximum length of a name. It is the limit for agent names.
pub(super) const LONGEST: usize = 64;

/// Derives a name from the name of a folder. The result may be empty.
pub(super) fn of_folder(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.unwrap_or_default().chars().map(fits).collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(LONGEST).collect()
}

/// The reason why a name is not a valid package name, if it is not.
pub(super) fn problem_of(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("it must start with a letter".to_owned());
    }
    if let Some(other) = name.chars().find(|c| !fits(*c)) {
        return Some(format!(
            "it contains `{other}`; only letters, digits, `-` and `_` are allowed"
        ));
    }
    if name.len() > LONGEST {
        return Some(format!("it is longer than {LONGEST} characters"));
    }
    let lower = name.to_lowercase();
    if KEYWORDS.contains(&&*lower) {
        return Some("it is a Rust keyword".to_owned());
    }
    TAKEN.contains(&&*lower).then(|| "it is reserved by cargo or a dependency".to_owned())
}

#[cfg(test)]
mod tests;
