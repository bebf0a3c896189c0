//! Rules about `Cargo.toml` files.

use anyhow::{Context as _, Result};

/// Returns a complaint for every external dependency of the root manifest without a reason.
pub(super) fn check_workspace(manifest: &str) -> Vec<String> {
    let section = manifest
        .lines()
        .enumerate()
        .skip_while(|(_, line)| line.trim() != "[workspace.dependencies]");
    let entries = section.skip(1).take_while(|(_, line)| !line.starts_with('['));
    entries
        .filter(|(_, line)| is_foreign_dependency(line) && reason(line).is_none_or(str::is_empty))
        .map(|(index, line)| {
            let name = line.split(['=', '.']).next().unwrap_or_default().trim();
            format!("Cargo.toml:{}: {name} has no `# reason` at the end of its line", index + 1)
        })
        .collect()
}

/// Returns a complaint if the crate does not take its lints from the workspace.
pub(super) fn check_member(name: &str, manifest: &str) -> Result<Option<String>> {
    let manifest: toml::Table =
        manifest.parse().with_context(|| format!("could not read the manifest of {name}"))?;
    let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
    Ok((inherits != Some(true))
        .then(|| format!("{name}: its manifest lacks `[lints] workspace = true`")))
}

fn is_foreign_dependency(line: &str) -> bool {
    let starts_entry = line.starts_with(|letter: char| letter.is_alphanumeric());
    starts_entry && line.contains('=') && !line.contains("path = ")
}

/// Returns the comment at the end of a line. A `#` in a string starts no comment.
fn reason(line: &str) -> Option<&str> {
    let mut quoted = false;
    for (index, letter) in line.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '#' if !quoted => return line.get(index + 1..).map(str::trim),
            _ => {}
        }
    }
    None
}
