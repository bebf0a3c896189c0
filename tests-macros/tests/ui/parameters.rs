//! Parameters that a tool cannot have.

use helix_agents_core::tool::{ToolContext, ToolError};
use helix_agents_macros::tool;

/// Has three parameters.
#[tool(crate = helix_agents_core)]
async fn three(_left: u32, _right: u32, _cx: &ToolContext) -> Result<(), ToolError> {
    Ok(())
}

/// Has two inputs.
#[tool(crate = helix_agents_core)]
async fn two_inputs(_left: u32, _right: u32) -> Result<(), ToolError> {
    Ok(())
}

/// Has the context first.
#[tool(crate = helix_agents_core)]
async fn wrong_order(_cx: &ToolContext, _input: u32) -> Result<(), ToolError> {
    Ok(())
}

/// Takes ownership of the context.
#[tool(crate = helix_agents_core)]
async fn owned_context(_input: u32, _cx: ToolContext) -> Result<(), ToolError> {
    Ok(())
}

/// Takes ownership of the context, its only parameter.
#[tool(crate = helix_agents_core)]
async fn only_owned_context(_cx: ToolContext) -> Result<(), ToolError> {
    Ok(())
}

/// Borrows the context mutably.
#[tool(crate = helix_agents_core)]
async fn mutable_context(_cx: &mut ToolContext) -> Result<(), ToolError> {
    Ok(())
}

/// Needs a static context.
#[tool(crate = helix_agents_core)]
async fn eternal_context(_cx: &'static ToolContext) -> Result<(), ToolError> {
    Ok(())
}

/// Borrows its input.
#[tool(crate = helix_agents_core)]
async fn borrowed(_input: &str) -> Result<(), ToolError> {
    Ok(())
}

/// Documents a parameter.
#[tool(crate = helix_agents_core)]
async fn documented(
    /// Models do not see this.
    _input: String,
) -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
