//! Return types that are no results of tools.

extern crate helix_agents_core as helix_agents;

use helix_agents::tool::ToolError;
use helix_agents_macros::tool;

struct Hit;

/// Returns its output as it is.
#[tool]
async fn bare() -> String {
    String::new()
}

/// Returns what cannot be written.
#[tool]
async fn not_json() -> Result<Vec<Hit>, ToolError> {
    Ok(Vec::new())
}

/// Fails with what is no error.
#[tool]
async fn not_an_error() -> Result<(), Hit> {
    Ok(())
}

fn main() {}
