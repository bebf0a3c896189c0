//! Return types that tools cannot have.

extern crate helix_agents_core as helix_agents;

use helix_agents::tool::ToolError;
use helix_agents_macros::tool;

struct Hit;

/// Returns its output without a `Result`.
#[tool]
async fn bare() -> String {
    String::new()
}

/// Returns an output that cannot be serialized.
#[tool]
async fn not_json() -> Result<Vec<Hit>, ToolError> {
    Ok(Vec::new())
}

/// Has an error type that is not an error.
#[tool]
async fn not_an_error() -> Result<(), Hit> {
    Ok(())
}

fn main() {}
