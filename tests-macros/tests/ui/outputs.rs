//! Outputs that are not owned or have no name.

use helix_agents_core::tool::{ToolContext, ToolError};
use helix_agents_macros::tool;

/// Borrows its output.
#[tool(crate = helix_agents_core)]
async fn borrowed(_cx: &ToolContext) -> Result<Vec<&str>, ToolError> {
    Ok(Vec::new())
}

/// Hides its output.
#[tool(crate = helix_agents_core)]
async fn hidden() -> Result<impl Send, ToolError> {
    Ok(())
}

fn main() {}
