//! The name under which models call a tool.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::{Error, LitStr, Result};

#[cfg(test)]
mod tests;

/// The maximum number of characters that providers allow.
const MAX_LENGTH: usize = 64;
const FINISH_TOOL: &str = "__finish__";
const RESERVED_PREFIXES: [&str; 3] = ["subagent__", "companion__", "workspace__"];

/// Returns the name of the tool that `function` becomes.
pub(crate) fn of(function: &Ident, given: Option<&LitStr>) -> Result<String> {
    let (name, span): (String, Span) = match given {
        Some(given) => (given.value(), given.span()),
        None => (function.unraw().to_string(), function.span()),
    };
    let hint =
        if given.is_none() { "; give it another with `#[tool(name = \"…\")]`" } else { "" };
    match problem(&name) {
        Some(problem) => Err(Error::new(span, format!("{problem}{hint}"))),
        None => Ok(name),
    }
}

/// Returns the problem of an invalid name. Core rejects the same names when an agent is built; this
/// check reports them at compile time.
fn problem(name: &str) -> Option<String> {
    if name == FINISH_TOOL {
        return Some(format!("the tool name `{name}` is reserved"));
    }
    let prefix = RESERVED_PREFIXES.into_iter().find(|prefix| name.starts_with(prefix));
    if let Some(prefix) = prefix {
        return Some(format!("tool names that start with `{prefix}` are reserved"));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_LENGTH || !name.chars().all(fits) {
        return Some(format!(
            "the tool name `{name}` must be 1 to {MAX_LENGTH} letters (a-z, A-Z), digits, `_` or `-`"
        ));
    }
    None
}
