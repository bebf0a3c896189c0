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

pub(crate) use calculator::CalculatorForm;
pub(crate) use files::FilesForm;
pub(crate) use http::HttpForm;
pub(crate) use note::{NoteForm, Notes};
pub(crate) use shell::ShellForm;
pub(crate) use time::TimeForm;

use crate::agent_file::{AgentFile, ToolsForm};

/// Creates the tools that an agent file enables, except `note`, which needs the agent's state. `seen`
/// overrides the folder that the file tools access.
///
/// # Errors
/// [`AgentInvalid`](helix_agents::error::ErrorCode::AgentInvalid) if a tool cannot be set up.
pub(crate) fn tools(form: &ToolsForm, file: &AgentFile, seen: Option<&Path>) -> Result<Vec<Tool>> {
    let mut tools = Vec::new();
    if let Some(files) = &form.files {
        tools.extend(files.tools(file, seen)?);
    }
    if let Some(http) = &form.http {
        tools.push(http.tool(&file.places)?);
    }
    if let Some(calculator) = form.calculator {
        tools.push(calculator.tool());
    }
    if let Some(time) = &form.time {
        tools.push(time.tool(&file.places)?);
    }
    if let Some(shell) = &form.shell {
        tools.push(shell.tool(file)?);
    }
    Ok(tools)
}

/// Makes each call of the tool require an approval with editable arguments, if `wanted`.
fn if_approved(tool: Tool, wanted: bool) -> Tool {
    if wanted { tool.requires_approval().editable() } else { tool }
}
