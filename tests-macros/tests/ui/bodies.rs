//! Mistakes in the body of a tool are reported where they are.

use std::rc::Rc;

use helix_agents_core::tool::ToolError;
use helix_agents_macros::tool;

/// Cannot be moved between threads.
#[tool(crate = helix_agents_core)]
async fn not_send() -> Result<(), ToolError> {
    let shared = Rc::new(());
    std::future::ready(()).await;
    drop(shared);
    Ok(())
}

fn main() {}
