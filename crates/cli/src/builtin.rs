//! The tools that an agent file can give to its agent.

mod calculator;
mod files;
mod http;
mod note;
mod shell;
mod time;

use std::path::Path;

use helix_agents::error::Result;
use helix_agents::tool::Tool;

pub(crate) use calculator::CalculatorConfig;
pub(crate) use files::FilesConfig;
pub(crate) use http::HttpConfig;
pub(crate) use note::{NoteConfig, Notes};
pub(crate) use shell::ShellConfig;
pub(crate) use time::TimeConfig;

use crate::agent_file::{AgentFile, ToolsConfig};

/// Creates the tools that an agent file enables, except `note`, which needs the agent's state. `seen`
/// overrides the folder that the file tools access.
///
/// # Errors
/// [`AgentInvalid`](helix_agents::error::ErrorCode::AgentInvalid) if a tool cannot be set up.
pub(crate) fn tools(
    config: &ToolsConfig,
    file: &AgentFile,
    seen: Option<&Path>,
) -> Result<Vec<Tool>> {
    let mut tools = Vec::new();
    if let Some(files) = &config.files {
        tools.extend(files.tools(file, seen)?);
    }
    if let Some(http) = &config.http {
        tools.push(http.tool(&file.source_map)?);
    }
    if let Some(calculator) = config.calculator {
        tools.push(calculator.tool());
    }
    if let Some(time) = &config.time {
        tools.push(time.tool(&file.source_map)?);
    }
    if let Some(shell) = &config.shell {
        tools.push(shell.tool(file)?);
    }
    Ok(tools)
}

/// Makes each call of the tool require an approval with editable arguments, if `wanted`.
fn if_approved(tool: Tool, wanted: bool) -> Tool {
    if wanted { tool.requires_approval().editable() } else { tool }
}
