//! A run that continues automatically when its killed process is restarted. Start the example with
//! the URL of a PostgreSQL database, kill it with `kill -9`, and start it again. The database
//! stores both the sessions and the workflows that execute them. The example uses the configured
//! model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents::prelude::*;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The session id. A restarted process finds its session with it.
const SESSION: &str = "grand-tour";

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

/// Visits a city. This takes a second.
#[tool]
async fn visit(place: Place) -> Result<String, ToolError> {
    println!("visiting {}", place.city);
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("visited {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("usage: durable URL [NAME]")?;
    let name = arguments.next().unwrap_or_else(|| "tour".to_owned());
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agent = Agent::builder("traveller")
        .system_prompt("Visit the cities one after another with the tool, then say how it was.")
        .tool(visit)
        .build()?;
    // A recovered run finds its agent in this registry.
    let agents = AgentRegistry::default();
    agents.register(&agent)?;

    let runtime = DurableRuntime::builder()
        .store(PostgresStore::builder(&url).schema(&name).open().await?)
        .database(&url)
        .schema(format!("{name}_dbos"))
        .app_name(&name)
        // Only one process with this name runs at a time, so it may recover all runs of its
        // predecessor.
        .executor_id("traveller-0")
        .registry(agents)
        .llm(models)
        .connect()
        .await?;
    println!("{}", travel(&runtime, &agent).await?.typed::<String>()?.into_output()?);
    runtime.shutdown().await;
    Ok(())
}

/// Starts the tour, or waits for one that was recovered when the runtime connected.
async fn travel(runtime: &DurableRuntime, agent: &Agent) -> Result<AgentResult, Error> {
    match runtime.handle(&SessionId::from(SESSION)).await {
        Ok(tour) => {
            println!("already started");
            tour.result().await
        }
        Err(error) if error.code() == ErrorCode::SessionNotFound => {
            println!("starting the tour");
            let options = ExecuteOptions::default().session(SessionId::from(SESSION));
            let input = "Visit Oslo, Rome and Athens.".into();
            runtime.execute(agent.erased(), input, options).await?.result().await
        }
        Err(error) => Err(error),
    }
}

/// Returns a scripted model. It picks its reply by the length of the history, so each process
/// continues where the previous one stopped.
fn script() -> ScriptedLlm {
    let go_to = |city| Reply::tool_call("visit", json!({ "city": city }));
    ScriptedLlm::new([
        go_to("Oslo"),
        go_to("Rome"),
        go_to("Athens"),
        Reply::text("All three are beautiful."),
    ])
}
