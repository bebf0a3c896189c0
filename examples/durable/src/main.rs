//! A run that goes on by itself when its killed process is started again: start it with the URL of a
//! PostgreSQL database, kill it with `kill -9`, start it again. Its sessions are in that database, and so
//! are the workflows that carry them out. The model is the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents::prelude::*;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Everything that a session knows of itself is found under its id.
const SESSION: &str = "grand-tour";

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

#[tool]
/// Visit a city. It takes a while.
async fn visit(place: Place) -> Result<String, ToolError> {
    println!("visiting {}", place.city);
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("been to {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("usage: durable URL [NAME]")?;
    let name = arguments.next().unwrap_or_else(|| "tour".to_owned());
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.model("")?);
    let agent = Agent::builder("traveller")
        .system_prompt("Visit the cities one after another with the tool, then say how it was.")
        .tool(visit)
        .build()?;
    // Whoever goes on finds the agent here.
    let agents = AgentRegistry::default();
    agents.register(&agent)?;

    let runtime = DurableRuntime::builder()
        .store(PostgresStore::builder(&url).schema(&name).open().await?)
        .database(&url)
        .schema(format!("{name}_dbos"))
        .app_name(&name)
        // There is one process of this name at a time, so what it left is its own.
        .executor_id("traveller-0")
        .registry(agents)
        .llm(models)
        .connect()
        .await?;
    println!("{}", travel(&runtime, &agent).await?.typed::<String>()?.into_output()?);
    runtime.shutdown().await;
    Ok(())
}

/// Begins the tour, or waits for it: it goes on since the runtime was connected.
async fn travel(runtime: &DurableRuntime, agent: &Agent) -> Result<AgentResult, Error> {
    match runtime.handle(&SessionId::from(SESSION)).await {
        Ok(tour) => {
            println!("under way, or done");
            tour.result().await
        }
        Err(error) if error.code() == ErrorCode::SessionNotFound => {
            println!("setting out");
            let options = ExecuteOptions::default().session(SessionId::from(SESSION));
            let input = "Visit Oslo, Rome and Athens.".into();
            runtime.execute(agent.erased(), input, options).await?.result().await
        }
        Err(error) => Err(error),
    }
}

/// It answers by the place in the history, so the next process goes on with it as well.
fn script() -> ScriptedLlm {
    let go_to = |city| Reply::tool_call("visit", json!({ "city": city }));
    ScriptedLlm::new([
        go_to("Oslo"),
        go_to("Rome"),
        go_to("Athens"),
        Reply::text("All three are beautiful."),
    ])
}
