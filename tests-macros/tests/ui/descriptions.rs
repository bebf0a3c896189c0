//! Tools without a description.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

#[tool(crate = helix_agents_core)]
async fn undocumented() -> Result<(), ToolError> {
    Ok(())
}

/// Has a doc comment, but not for models.
#[tool(crate = helix_agents_core, description = " ")]
async fn blank() -> Result<(), ToolError> {
    Ok(())
}

#[tool(crate = helix_agents_core)]
#[doc = include_str!("descriptions.md")]
async fn elsewhere() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
