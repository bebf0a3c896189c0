//! Arguments that the attribute does not take.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Wants an option.
#[tool(crate = helix_agents_core, timeout = 3)]
async fn option() -> Result<(), ToolError> {
    Ok(())
}

/// Wants a flag.
#[tool(strict)]
async fn flag() -> Result<(), ToolError> {
    Ok(())
}

/// Gives only a value.
#[tool("search")]
async fn value() -> Result<(), ToolError> {
    Ok(())
}

/// Gives a name that is no text.
#[tool(name = search)]
async fn no_text() -> Result<(), ToolError> {
    Ok(())
}

/// Gives two names.
#[tool(crate = helix_agents_core, name = "one", name = "two")]
async fn duplicate() -> Result<(), ToolError> {
    Ok(())
}

/// Gives a crate as text.
#[tool(crate = "helix_agents_core")]
async fn no_path() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
