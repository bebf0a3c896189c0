//! An agent file.

use std::path::{Path, PathBuf};

use helix_agents::error::{Error, ErrorCode, Result};

use super::draft::Draft;
use super::name;
use crate::agent_file;

/// What the first line of the template names.
const SCHEMA: &str = "agent.schema.json";

const TEMPLATE: &str = include_str!("../../templates/agent.toml");

/// The agent file that a path stands for: a name that ends in `.toml` is the file's own, any other
/// one that of its folder.
pub(super) fn place(path: &Path) -> PathBuf {
    if path.extension().is_some_and(|it| it == "toml") && !path.is_dir() {
        return path.to_owned();
    }
    let file = path.join("agent.toml");
    file.strip_prefix(".").map(Path::to_owned).unwrap_or(file)
}

/// The agent file and its schema for editors, with this name or the one that its folder suggests.
///
/// # Errors
/// [`ErrorCode::InputInvalid`] if no agent can have the name.
pub(super) fn draft(file: &Path, name: Option<&str>) -> Result<Draft> {
    let name = name.map_or_else(|| suggested(file), str::to_owned);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > name::LONGEST || !name.chars().all(fits) {
        let message = format!(
            "`{name}` cannot be the name of an agent: it has 1 to {} letters, digits, `-` and `_`",
            name::LONGEST
        );
        return Err(Error::new(ErrorCode::InputInvalid, message));
    }
    let schema = serde_json::to_string_pretty(&agent_file::schema()).map_err(|error| {
        Error::new(ErrorCode::Internal, "the schema of agent files is no JSON").with_source(error)
    })?;
    let mut draft = Draft::default();
    draft.add(file.to_owned(), TEMPLATE.replace("{{name}}", &name));
    draft.add(file.with_file_name(SCHEMA), schema + "\n");
    Ok(draft)
}

/// The file's own name, or its folder's if every agent file is called so.
fn suggested(file: &Path) -> String {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let own = file.with_extension("");
    let is_usual = file.file_name().is_some_and(|it| it == "agent.toml");
    let folder = file.parent().unwrap_or(&file);
    let name = name::of_folder(if is_usual { folder } else { &own });
    if name.is_empty() { "agent".to_owned() } else { name }
}

#[cfg(test)]
mod tests;
