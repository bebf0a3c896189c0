//! A library with public tools, which must be clean under lints on public items.

#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    missing_copy_implementations,
    unnameable_types,
    unreachable_pub,
    clippy::pedantic,
    reason = "a user's crate may deny them"
)]

use helix_agents::tool;
use helix_agents_core::tool::{ToolContext, ToolError};

/// Returns the step.
#[tool(crate = helix_agents_core)]
pub async fn step(cx: &ToolContext) -> Result<u32, ToolError> {
    Ok(cx.step())
}

#[tool(crate = helix_agents_core, description = "Has a description instead of a doc comment.")]
pub async fn undocumented(input: String) -> Result<usize, ToolError> {
    Ok(input.len())
}
