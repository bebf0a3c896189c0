//! Functions that cannot be tools.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Is not async.
#[tool(crate = helix_agents_core)]
fn not_async(_input: String) -> Result<(), ToolError> {
    Ok(())
}

struct Shop;

impl Shop {
    /// Is a method.
    #[tool(crate = helix_agents_core)]
    async fn method(&self, _input: String) -> Result<(), ToolError> {
        Ok(())
    }
}

/// Is generic.
#[tool(crate = helix_agents_core)]
async fn generic<T: Send>(_input: T) -> Result<(), ToolError> {
    Ok(())
}

/// Has a lifetime.
#[tool(crate = helix_agents_core)]
async fn lifetime<'a>(_input: &'a str) -> Result<(), ToolError> {
    Ok(())
}

/// Has an unnamed input type.
#[tool(crate = helix_agents_core)]
async fn anonymous(_input: impl Send) -> Result<(), ToolError> {
    Ok(())
}

/// Returns nothing.
#[tool(crate = helix_agents_core)]
async fn silent(_input: String) {}

/// Has several problems at once.
#[tool(crate = helix_agents_core)]
unsafe extern "C" fn everything<const N: usize>(_input: [u8; N]) -> Result<(), ToolError> {
    Ok(())
}

/// Has the attribute twice.
#[tool(crate = helix_agents_core)]
#[tool(crate = helix_agents_core)]
async fn twice() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
