//! Functions that cannot be tools.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Does not wait.
#[tool(crate = helix_agents_core)]
fn not_async(_input: String) -> Result<(), ToolError> {
    Ok(())
}

struct Shop;

impl Shop {
    /// Has data of its own.
    #[tool(crate = helix_agents_core)]
    async fn method(&self, _input: String) -> Result<(), ToolError> {
        Ok(())
    }
}

/// Has no schema.
#[tool(crate = helix_agents_core)]
async fn generic<T: Send>(_input: T) -> Result<(), ToolError> {
    Ok(())
}

/// Borrows.
#[tool(crate = helix_agents_core)]
async fn lifetime<'a>(_input: &'a str) -> Result<(), ToolError> {
    Ok(())
}

/// Has no name for its input.
#[tool(crate = helix_agents_core)]
async fn anonymous(_input: impl Send) -> Result<(), ToolError> {
    Ok(())
}

/// Says nothing.
#[tool(crate = helix_agents_core)]
async fn silent(_input: String) {}

/// Is many things at once, and none of them a tool.
#[tool(crate = helix_agents_core)]
unsafe extern "C" fn everything<const N: usize>(_input: [u8; N]) -> Result<(), ToolError> {
    Ok(())
}

/// Is said twice.
#[tool(crate = helix_agents_core)]
#[tool(crate = helix_agents_core)]
async fn twice() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
