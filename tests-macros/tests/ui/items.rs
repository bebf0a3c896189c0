//! Items that are not functions.

use helix_agents_macros::tool;

/// Is a type.
#[tool(crate = helix_agents_core)]
struct Search;

/// Is a module.
#[tool(crate = helix_agents_core)]
mod search {}

fn main() {}
