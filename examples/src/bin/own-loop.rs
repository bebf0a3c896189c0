//! An agent on a custom loop. The example uses the configured model, or a scripted one if none is
//! configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its result")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use helix_agents::prelude::*;
use helix_agents_examples::own_loop::OwnLoop;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The numbers to add.
    numbers: Vec<i64>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Total {
    /// The total price.
    total: i64,
}

/// Adds numbers.
#[tool]
async fn add(sum: Sum) -> Result<i64, ToolError> {
    let total = sum.numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number));
    total.ok_or_else(|| ToolError::new("the sum is too large; add fewer numbers at once"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agent = Agent::builder("cashier")
        .system_prompt("Add the prices with the tool, then report the total.")
        .tool(add)
        .output::<Total>()
        .build()?;
    let store = Arc::new(SqliteStore::open("till.db").await?);
    let own_loop = OwnLoop::new(store, Arc::new(models), Duration::from_secs(60));
    let (agent, session) = (agent.erased(), SessionId::from("till"));
    let result = match own_loop.resume(&agent, &session).await {
        // There is no unfinished turn, so start one.
        Err(error) if nothing_to_resume(&error) => {
            own_loop.execute(&agent, &session, "Tea for 4, milk for 1, a cake for 12.").await?
        }
        resumed => resumed?,
    };
    let total: Total = result.typed()?.into_output()?;
    println!("total: {}", total.total);
    Ok(())
}

fn nothing_to_resume(error: &Error) -> bool {
    matches!(error.code(), ErrorCode::SessionNotFound | ErrorCode::NothingToResume)
}

/// Returns a scripted model that makes the same replies in each turn.
fn script() -> ScriptedLlm {
    let turn = [
        Reply::tool_call("add", json!({ "numbers": [4, 1, 12] })),
        Reply::finish(json!({ "total": 17 })),
    ];
    ScriptedLlm::new((0..50).flat_map(|_| turn.clone()))
}
