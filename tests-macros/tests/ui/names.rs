//! Names that a tool cannot have.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Is reserved for the framework.
#[tool(crate = helix_agents_core)]
async fn __finish__() -> Result<(), ToolError> {
    Ok(())
}

/// Is reserved for sub-agents.
#[tool(crate = helix_agents_core)]
async fn subagent__writer() -> Result<(), ToolError> {
    Ok(())
}

/// Is reserved for companions.
#[tool(crate = helix_agents_core, name = "companion__send")]
async fn companion() -> Result<(), ToolError> {
    Ok(())
}

/// Is reserved for workspaces.
#[tool(crate = helix_agents_core, name = "workspace__read")]
async fn workspace() -> Result<(), ToolError> {
    Ok(())
}

/// Is too long.
#[tool(crate = helix_agents_core)]
async fn a_name_that_says_more_about_what_the_tool_does_than_any_name_should() -> Result<(), ToolError>
{
    Ok(())
}

/// Has letters that providers refuse.
#[tool(crate = helix_agents_core)]
async fn größe() -> Result<(), ToolError> {
    Ok(())
}

/// Has a space.
#[tool(crate = helix_agents_core, name = "look up")]
async fn space() -> Result<(), ToolError> {
    Ok(())
}

/// Is empty.
#[tool(crate = helix_agents_core, name = "")]
async fn empty() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
