//! Blocks and methods that cannot be tools.

use helix_agents_core::tool::{ToolContext, ToolError};
use helix_agents_macros::tools;

struct Shop;

#[tools(crate = helix_agents_core)]
impl Shop {
    /// Takes no receiver.
    #[tool]
    async fn no_receiver(_input: String) -> Result<(), ToolError> {
        Ok(())
    }

    /// Needs exclusive access.
    #[tool]
    async fn exclusive(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Consumes the value.
    #[tool]
    async fn consuming(self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Is not async.
    #[tool]
    fn blocking(&self) -> Result<(), ToolError> {
        Ok(())
    }

    #[tool]
    async fn undocumented(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Names the crate.
    #[tool(crate = helix_agents_core)]
    async fn with_crate(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Has an option.
    #[tool(timeout = 5)]
    async fn with_option(&self, _cx: &ToolContext) -> Result<(), ToolError> {
        Ok(())
    }
}

struct Empty;

#[tools(crate = helix_agents_core)]
impl Empty {
    async fn unmarked(&self) -> Result<(), ToolError> {
        Ok(())
    }
}

#[tools(crate = helix_agents_core, name = "shop")]
impl Empty {
    /// Is fine.
    #[tool]
    async fn fine(&self) -> Result<(), ToolError> {
        Ok(())
    }
}

#[tools(crate = helix_agents_core)]
impl Clone for Empty {
    fn clone(&self) -> Self {
        Self
    }
}

#[tools(crate = helix_agents_core)]
async fn function() -> Result<(), ToolError> {
    Ok(())
}

/// Is marked with the attribute of functions.
#[helix_agents_macros::tool(crate = helix_agents_core)]
impl Empty {}

struct Borrowed;

#[tools(crate = helix_agents_core)]
impl Borrowed {
    /// Returns what cannot be serialized.
    #[tool]
    async fn output(&self) -> Result<std::time::Instant, ToolError> {
        Ok(std::time::Instant::now())
    }

    /// Takes what has no schema.
    #[tool]
    async fn input(&self, _input: std::time::Instant) -> Result<(), ToolError> {
        Ok(())
    }
}

fn main() {}
