//! Types that cannot be inputs of tools.

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;
use serde::Deserialize;

#[derive(Deserialize)]
struct Query {
    text: String,
}

/// Has no schema for its input.
#[tool(crate = helix_agents_core)]
async fn no_schema(input: Query) -> Result<String, ToolError> {
    Ok(input.text)
}

fn main() {}
