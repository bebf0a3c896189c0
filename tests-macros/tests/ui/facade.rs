//! Without `crate`, the default is the facade, which must be a dependency.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Has no facade.
#[tool]
async fn lonely() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
