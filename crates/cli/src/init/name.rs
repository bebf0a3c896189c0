//! Names of packages and agents.

use std::path::Path;

/// What cargo, or a program that it builds, has a meaning of its own for.
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

/// Words of the language, which no crate is named like.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The longest name, which is that of an agent.
pub(super) const LONGEST: usize = 64;

/// The name that the folder's suggests; empty if it suggests none.
pub(super) fn of_folder(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.unwrap_or_default().chars().map(fits).collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(LONGEST).collect()
}

/// What keeps this from being the name of a package, if anything does.
pub(super) fn problem_of(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("it has to begin with a letter".to_owned());
    }
    if let Some(other) = name.chars().find(|c| !fits(*c)) {
        return Some(format!(
            "it holds `{other}`, and only letters, digits, `-` and `_` may be in it"
        ));
    }
    if name.len() > LONGEST {
        return Some(format!("it is longer than {LONGEST} characters"));
    }
    let lower = name.to_lowercase();
    if KEYWORDS.contains(&&*lower) {
        return Some("it is a word of the language".to_owned());
    }
    TAKEN.contains(&&*lower).then(|| "cargo has another meaning for it".to_owned())
}

#[cfg(test)]
mod tests;
