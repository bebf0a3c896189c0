//! Workers and clients of a Temporal server. Start a server with `temporal server start-dev`, then one or more workers:
//!
//! ```sh
//! cargo run -p helix-agents-examples --features servers --bin temporal -- worker
//! ```
//!
//! Start a client in the same way, with `-- ask "Visit Oslo, Rome and Athens."`. Kill workers at any time: others
//! continue their runs. The example uses the configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Result, bail};
use helix_agents::prelude::*;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

/// Visits a city. This takes a second.
#[tool]
async fn visit(place: Place, _cx: &ToolContext) -> Result<String, ToolError> {
    println!("visiting {}", place.city);
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("visited {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

fn agent() -> Result<Agent, Error> {
    Agent::builder("traveller")
        .system_prompt("Visit the cities one after another with the tool, then say how it was.")
        .tool(visit)
        .build()
}

/// Connects to the server. All processes use the same store, task queue and agents.
async fn runtime(agent: &Agent) -> Result<TemporalRuntime> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agents = AgentRegistry::default();
    agents.register(agent)?;
    let setting = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let queue = setting("TOURS_QUEUE", "tours");
    let runtime = TemporalRuntime::builder()
        .target(setting("TOURS_SERVER", "http://localhost:7233"))
        .prefix(&*queue)
        .task_queue(queue)
        .store(SqliteStore::open("tours.db").await?)
        .llm(models)
        .registry(agents)
        .lease(Duration::from_secs(2));
    Ok(runtime.connect().await?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let agent = agent()?;
    match arguments[..] {
        ["worker"] => run_worker(&runtime(&agent).await?).await,
        ["ask", question] => ask(&runtime(&agent).await?, &agent, question).await,
        _ => bail!("usage: temporal worker | temporal ask QUESTION"),
    }
}

/// Runs a worker until Ctrl-C.
async fn run_worker(runtime: &TemporalRuntime) -> Result<()> {
    let worker = TemporalWorker::builder(runtime).start().await?;
    println!("worker started");
    tokio::select! {
        ended = worker.ended() => ended?,
        pressed = tokio::signal::ctrl_c() => pressed?,
    }
    worker.shutdown().await?;
    Ok(())
}

/// Starts a run and waits for its result. A worker executes the run, not this process.
async fn ask(runtime: &TemporalRuntime, agent: &Agent, question: &str) -> Result<()> {
    let run = runtime.start(agent, question, ExecuteOptions::default()).await?;
    println!("started session {}", run.session());
    println!("{}", run.result().await?.into_output()?);
    Ok(())
}

/// Returns a scripted model. It picks its reply by the length of the history, so any worker can
/// continue a run.
fn script() -> ScriptedLlm {
    let go_to = |city| Reply::tool_call("visit", json!({ "city": city }));
    ScriptedLlm::new([
        go_to("Oslo"),
        go_to("Rome"),
        go_to("Athens"),
        Reply::text("All three are beautiful."),
    ])
}
