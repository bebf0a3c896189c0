//! A planning agent. It plans rounds of tool calls, which run concurrently and are shown live, and
//! then it answers. The example uses the configured model, or a scripted one if none is configured.
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

/// Returns the weather in a city this weekend.
#[tool]
async fn weather(place: Place) -> Result<String, ToolError> {
    match place.city.as_str() {
        "Bergen" => Ok("heavy rain".to_owned()),
        "Oslo" => Ok("sunny, 18 degrees".to_owned()),
        city => Err(ToolError::new(format!("there is no forecast for {city}"))),
    }
}

/// Returns the trains to a city on Saturday morning.
#[tool]
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
        .llm(PlanningLlm::around(model).plan(agent.definition(), options)?)
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
    let session = run.load_session().await?;
    println!("{} records, {} steps", tool_logs(session.transcript()).len(), session.last_step());
    Ok(())
}

/// The fields of a plan that the example prints.
#[derive(Deserialize)]
struct Plan {
    round_index: u32,
    execution_commands: Vec<Command>,
    stopped: Option<Stop>,
}

fn show(plan: &str) -> Result<()> {
    let plan: Plan = serde_json::from_str(plan)?;
    match plan.stopped {
        Some(stopped) => println!("planning ended: {stopped:?}"),
        None => println!("round {}", plan.round_index),
    }
    for command in plan.execution_commands {
        println!("  {}: {}", command.tool_name, command.purpose);
    }
    Ok(())
}

/// Returns the configured model, or the scripted one if none is configured.
fn model() -> Result<(String, Arc<dyn LlmAdapter>)> {
    let registry = ProviderRegistry::from_env()?;
    if registry.is_empty() {
        eprintln!("no model is configured; using a scripted one");
        return Ok(("script".to_owned(), Arc::new(script::script())));
    }
    let default = registry.default_model().map(|model| model.to_string());
    let default = default.unwrap_or_else(|_| "openai:gpt-4.1-mini".to_owned());
    let name = std::env::var("HELIX_MODEL").unwrap_or(default);
    eprintln!("the model is {name}");
    Ok((name, Arc::new(registry)))
}
