//! Arguments that the attribute does not accept.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Has an unknown option.
#[tool(crate = helix_agents_core, timeout = 3)]
async fn option() -> Result<(), ToolError> {
    Ok(())
}

/// Has an unknown flag.
#[tool(strict)]
async fn flag() -> Result<(), ToolError> {
    Ok(())
}

/// Has only a value.
#[tool("search")]
async fn value() -> Result<(), ToolError> {
    Ok(())
}

/// Has a name that is not a string.
#[tool(name = search)]
async fn no_text() -> Result<(), ToolError> {
    Ok(())
}

/// Has two names.
#[tool(crate = helix_agents_core, name = "one", name = "two")]
async fn duplicate() -> Result<(), ToolError> {
    Ok(())
}

/// Has a crate as a string.
#[tool(crate = "helix_agents_core")]
async fn no_path() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
