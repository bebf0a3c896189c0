//! The tools that an agent file can give to its agent.

mod calculator;
mod files;
mod http;
mod note;
mod time;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;
use helix_agents::error::Result;
use helix_agents::tool::Tool;

pub(crate) use calculator::CalculatorForm;
pub(crate) use files::FilesForm;
pub(crate) use http::HttpForm;
pub(crate) use note::{NoteForm, Notes};
pub(crate) use time::TimeForm;

use crate::agent_file::{Places, ToolsForm};

/// What the tools of an agent file have around them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    /// The agent file's folder.
    pub(crate) folder: &'a Arc<Dir>,
    /// The folder that file tools see, if a person named one.
    pub(crate) files: Option<&'a Path>,
    /// The agent file and the files that it names.
    pub(crate) own: &'a [PathBuf],
    /// Where the tools' settings stand.
    pub(crate) places: &'a Places,
}

/// The tools, but for `note`, which needs the agent's state.
///
/// # Errors
/// [`AgentInvalid`](helix_agents::error::ErrorCode::AgentInvalid) if one cannot be set up.
pub(crate) fn tools(form: &ToolsForm, around: &Around<'_>) -> Result<Vec<Tool>> {
    let mut tools = Vec::new();
    if let Some(files) = &form.files {
        tools.extend(files.tools(around)?);
    }
    if let Some(http) = &form.http {
        tools.push(http.tool(around)?);
    }
    if let Some(calculator) = form.calculator {
        tools.push(calculator.tool());
    }
    if let Some(time) = &form.time {
        tools.push(time.tool(around)?);
    }
    Ok(tools)
}
