//! One program on any of the stores. `cargo run -p helix-agents-example-stores -- sqlite notes.db` keeps
//! its session in a file, `-- postgres URL` and `-- redis URL` on a server, and without arguments it is
//! in memory. The model is the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::{Result, bail};
use helix_agents::prelude::*;
use helix_agents::runtime_local::LocalRuntimeBuilder;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a process finds again that another one has left, if the store outlives it.
const SESSION: &str = "shopping";

#[derive(Default, Deserialize, Serialize, JsonSchema)]
struct List {
    items: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    /// What to buy.
    name: String,
}

#[tool]
/// Put something on the shopping list.
async fn note(item: Item, cx: &ToolContext) -> Result<&'static str, ToolError> {
    cx.update_state(|list: &mut List| list.items.push(item.name))?;
    Ok("noted")
}

/// All that the choice of a store changes.
async fn on_store(runtime: LocalRuntimeBuilder, store: &[&str]) -> Result<LocalRuntimeBuilder> {
    Ok(match store {
        [] => runtime.store(MemoryStore::new()),
        ["sqlite", file] => runtime.store(SqliteStore::open(file).await?),
        ["postgres", url] => runtime.store(PostgresStore::open(url).await?),
        ["redis", url] => runtime.store(RedisStore::open(url).await?),
        _ => bail!("usage: stores [sqlite FILE | postgres URL | redis URL]"),
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let store: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.model("")?);
    let agent = Agent::builder("shopper")
        .system_prompt("You keep a shopping list with your tool.")
        .state::<List>()
        .tool(note)
        .build()?;
    let runtime = on_store(LocalRuntime::builder().llm(models), &store).await?.build()?;

    let options = ExecuteOptions::default().session(SessionId::from(SESSION));
    let turn = runtime.start(&agent, "We need apples.", options).await?;
    println!("{}", turn.result().await?.into_output()?);
    let fold = turn.fold().await?;
    println!("turn {}, the list: {}", fold.turn(), fold.state()["items"]);
    runtime.shutdown().await;
    Ok(())
}

/// It answers by the place in the history, so each turn has its own words.
fn script() -> ScriptedLlm {
    let apples = || Reply::tool_call("note", json!({ "name": "apples" }));
    ScriptedLlm::new([
        apples(),
        Reply::text("Apples are on the list."),
        apples(),
        Reply::text("There are more apples on it now."),
    ])
}
