//! An agent that plans: rounds of tools side by side, shown as they happen, and then the answer. The
//! model is the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

mod script;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use helix_agents::llm::LlmAdapter;
use helix_agents::planner::{Command, PLAN_CHUNK, PlanOptions, PlanningLlm, Stop, tool_logs};
use helix_agents::prelude::*;
use helix_agents::runtime_local::TokioClock;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

#[tool]
/// The weather in a city this weekend.
async fn weather(place: Place) -> Result<String, ToolError> {
    match place.city.as_str() {
        "Bergen" => Ok("heavy rain".to_owned()),
        "Oslo" => Ok("sunny, 18 degrees".to_owned()),
        city => Err(ToolError::new(format!("nothing is known of the weather in {city}"))),
    }
}

#[tool]
/// The trains to a city on Saturday morning.
async fn trains(place: Place) -> Result<Vec<String>, ToolError> {
    Ok(vec![format!("08:25 to {}", place.city), format!("10:25 to {}", place.city)])
}

#[tokio::main]
async fn main() -> Result<()> {
    let (name, model) = model()?;
    let agent = Agent::builder("traveller")
        .system_prompt("You plan a weekend trip. Recommend one city, and a train to it.")
        .tool(weather)
        .tool(trains)
        .model(name)
        .build()?;
    let options =
        PlanOptions::default().max_rounds(3).timeout(Duration::from_secs(120), TokioClock::new());
    let runtime = LocalRuntime::builder()
        .store(SqliteStore::open("trip.db").await?)
        .llm(PlanningLlm::around(model).plan(&agent, options)?)
        .build()?;
    let run =
        runtime.start(&agent, "Bergen or Oslo this weekend?", ExecuteOptions::default()).await?;
    let mut chunks = run.stream().await?;
    while let Some(chunk) = chunks.next().await {
        match &chunk?.chunk.kind {
            ChunkKind::Custom { name, data } if name == PLAN_CHUNK => show(data)?,
            ChunkKind::ToolEnd { tool, result: Some(result), .. } => println!("  {tool}: {result}"),
            ChunkKind::ToolError { tool, error, .. } => println!("  {tool}: {}", error.message),
            _ => {}
        }
    }
    println!("{}", run.result().await?.into_output()?);
    let session = run.fold().await?;
    println!("{} records, {} steps", tool_logs(session.transcript()).len(), session.last_step());
    Ok(())
}

/// What the program shows of a plan.
#[derive(Deserialize)]
struct Plan {
    round_index: u32,
    execution_commands: Vec<Command>,
    stopped: Option<Stop>,
}

fn show(plan: &str) -> Result<()> {
    let plan: Plan = serde_json::from_str(plan)?;
    match plan.stopped {
        Some(stopped) => println!("no more plans: {stopped:?}"),
        None => println!("round {}", plan.round_index),
    }
    for command in plan.execution_commands {
        println!("  {}: {}", command.tool_name, command.purpose);
    }
    Ok(())
}

/// The model that is configured, else the script.
fn model() -> Result<(String, Arc<dyn LlmAdapter>)> {
    let registry = ProviderRegistry::from_env()?;
    if registry.is_empty() {
        eprintln!("no model is configured: a script plays it");
        return Ok(("script".to_owned(), Arc::new(script::script())));
    }
    let default = registry.model("").map(|model| model.to_string());
    let default = default.unwrap_or_else(|_| "openai:gpt-4.1-mini".to_owned());
    let name = std::env::var("HELIX_MODEL").unwrap_or(default);
    eprintln!("the model is {name}");
    Ok((name, Arc::new(registry)))
}
