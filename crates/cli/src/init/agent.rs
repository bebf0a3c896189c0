//! The agent file that `helix init` creates.

use std::path::{Path, PathBuf};

use helix_agents::agent_file;
use helix_agents::error::{Error, ErrorCode, Result};

use super::draft::Draft;
use super::name;

/// The name of the schema file, which the first line of the template references.
const SCHEMA: &str = "agent.schema.json";

const TEMPLATE: &str = include_str!("../../templates/agent.toml");

/// The path of the agent file: a path that ends in `.toml` is the file, any other one is its folder.
pub(super) fn place(path: &Path) -> PathBuf {
    if path.extension().is_some_and(|extension| extension == "toml") && !path.is_dir() {
        return path.to_owned();
    }
    let file = path.join("agent.toml");
    file.strip_prefix(".").map(Path::to_owned).unwrap_or(file)
}

/// Creates the agent file and its schema for editors. The default name is derived from the path.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if the name is not a valid agent name.
pub(super) fn draft(file: &Path, name: Option<&str>) -> Result<Draft> {
    let name = name.map_or_else(|| suggested(file), str::to_owned);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > name::LONGEST || !name.chars().all(fits) {
        let message = format!(
            "`{name}` is not a valid agent name: use 1 to {} letters, digits, `-` and `_`",
            name::LONGEST
        );
        return Err(Error::new(ErrorCode::InputInvalid, message));
    }
    let schema = serde_json::to_string_pretty(&agent_file::schema()).map_err(|error| {
        Error::new(ErrorCode::Internal, "the schema of agent files is not JSON").with_source(error)
    })?;
    let mut draft = Draft::default();
    draft.add(file.to_owned(), TEMPLATE.replace("{{name}}", &name));
    draft.add(file.with_file_name(SCHEMA), schema + "\n");
    Ok(draft)
}

/// The default agent name: the name of the file, or of its folder if the file is `agent.toml`.
fn suggested(file: &Path) -> String {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let own = file.with_extension("");
    let is_usual = file.file_name().is_some_and(|name| name == "agent.toml");
    let folder = file.parent().unwrap_or(&file);
    let name = name::of_folder(if is_usual { folder } else { &own });
    if name.is_empty() { "agent".to_owned() } else { name }
}

#[cfg(test)]
mod tests;
