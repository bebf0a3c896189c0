//! Without `crate` the facade is meant, which must be there.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Comes without the facade.
#[tool]
async fn lonely() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
