//! `helix schema`: the JSON Schema of agent files, for editors.

use anyhow::Result;
use helix_agents::agent_file;
use helix_agents::terminal::Screen;

use crate::exit::Exit;

/// Runs the command. With `--json` the schema is in one line.
pub(crate) fn run(screen: &Screen) -> Result<Exit> {
    let schema = agent_file::schema();
    if screen.is_json() {
        screen.json(&schema)?;
    } else {
        screen.line(serde_json::to_string_pretty(&schema)?)?;
    }
    Ok(Exit::Completed)
}
