//! A context that only has the right name.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

struct ToolContext;

/// Takes another context.
#[tool(crate = helix_agents_core)]
async fn other(_cx: &ToolContext) -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
