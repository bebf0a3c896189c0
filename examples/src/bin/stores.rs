//! One program on any of the stores:
//!
//! ```sh
//! cargo run -p helix-agents-examples --features servers --bin stores -- sqlite:notes.db
//! ```
//!
//! This command stores the session in a file. With `-- postgres://…` or `-- redis://…` the session is on a server, and
//! without arguments in memory. The example uses the configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::Result;
use helix_agents::prelude::*;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The session id. If the store is durable, each process continues the same session.
const SESSION: &str = "shopping";

#[derive(Default, Deserialize, Serialize, JsonSchema)]
struct List {
    items: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    /// The name of the article.
    name: String,
}

/// Adds an article to the shopping list.
#[tool]
async fn note(item: Item, cx: &ToolContext) -> Result<&'static str, ToolError> {
    cx.update_state(|list: &mut List| list.items.push(item.name))?;
    Ok("noted")
}

#[tokio::main]
async fn main() -> Result<()> {
    // This is the only code that depends on the choice of a store.
    let store = open_store(&std::env::args().nth(1).unwrap_or("memory:".to_owned())).await?;
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agent = Agent::builder("shopper")
        .system_prompt("You keep a shopping list with the tool.")
        .state::<List>()
        .tool(note)
        .build()?;
    let runtime = LocalRuntime::builder().llm(models).store(store).build()?;

    let options = ExecuteOptions::default().session(SessionId::from(SESSION));
    let turn = runtime.start(&agent, "We need apples.", options).await?;
    println!("{}", turn.result().await?.into_output()?);
    let fold = turn.load_session().await?;
    println!("turn {}, list: {}", fold.turn(), fold.state()["items"]);
    runtime.shutdown().await;
    Ok(())
}

/// Returns a scripted model. It picks its reply by the length of the history, so each turn has its
/// own replies.
fn script() -> ScriptedLlm {
    let apples = || Reply::tool_call("note", json!({ "name": "apples" }));
    ScriptedLlm::new([
        apples(),
        Reply::text("Apples are on the list."),
        apples(),
        Reply::text("There are more apples on it now."),
    ])
}
