//! A context type that has the right name only.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

struct ToolContext;

/// Has another context type.
#[tool(crate = helix_agents_core)]
async fn other(_cx: &ToolContext) -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
