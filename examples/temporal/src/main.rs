//! Workers and clients of a Temporal server. Start one with `temporal server start-dev`, then `cargo run -p
//! helix-agents-example-temporal -- worker` in one terminal or several, and `-- ask "Visit Oslo, Rome and Athens."` in another.
//! Kill workers as you like: others go on. The model is the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Result, bail};
use helix_agents::prelude::*;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

#[tool]
/// Visit a city. It takes a while.
async fn visit(place: Place, _cx: &ToolContext) -> Result<String, ToolError> {
    println!("visiting {}", place.city);
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("been to {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

fn agent() -> Result<Agent, Error> {
    Agent::builder("traveller")
        .system_prompt("Visit the cities one after another with the tool, then say how it was.")
        .tool(visit)
        .build()
}

/// What all processes have in common: the store, the queue, and the agents by their names.
async fn runtime(agent: &Agent) -> Result<TemporalRuntime> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.model("")?);
    let agents = AgentRegistry::default();
    agents.register(agent)?;
    let set = |name, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let queue = set("TOURS_QUEUE", "tours");
    let runtime = TemporalRuntime::builder()
        .target(set("TOURS_SERVER", "http://localhost:7233"))
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
        ["worker"] => work(&runtime(&agent).await?).await,
        ["ask", question] => ask(&runtime(&agent).await?, &agent, question).await,
        _ => bail!("usage: temporal worker | temporal ask QUESTION"),
    }
}

/// Carries out whatever is asked, until Ctrl-C.
async fn work(runtime: &TemporalRuntime) -> Result<()> {
    let worker = TemporalWorker::builder(runtime).start().await?;
    println!("working");
    tokio::select! {
        ended = worker.ended() => ended?,
        pressed = tokio::signal::ctrl_c() => pressed?,
    }
    worker.shutdown().await?;
    Ok(())
}

/// Begins a run and waits for its answer. Nothing of it is done in this process.
async fn ask(runtime: &TemporalRuntime, agent: &Agent, question: &str) -> Result<()> {
    let run = runtime.start(agent, question, ExecuteOptions::default()).await?;
    println!("asked in session {}", run.session());
    println!("{}", run.result().await?.into_output()?);
    Ok(())
}

/// It answers by the place in the history, so any worker goes on with it.
fn script() -> ScriptedLlm {
    let go_to = |city| Reply::tool_call("visit", json!({ "city": city }));
    ScriptedLlm::new([
        go_to("Oslo"),
        go_to("Rome"),
        go_to("Athens"),
        Reply::text("All three are beautiful."),
    ])
}
