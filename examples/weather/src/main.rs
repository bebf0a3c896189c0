//! The first agent of the guide: one tool and a typed output. The model is the one that is
//! configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it got")]

use std::sync::Arc;

use anyhow::Result;
use helix_agents::llm::LlmAdapter;
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

#[derive(Debug, Deserialize, JsonSchema)]
struct Advice {
    umbrella: bool,
    reason: String,
}

#[tool]
/// Today's weather in a city.
async fn weather(place: Place) -> Result<String, ToolError> {
    Ok(format!("heavy rain in {} until noon", place.city))
}

#[tokio::main]
async fn main() -> Result<()> {
    let (name, model) = model()?;
    let agent = Agent::builder("advisor")
        .system_prompt("Look at the weather, then say whether to take an umbrella.")
        .tool(weather)
        .output::<Advice>()
        .model(name)
        .build()?;
    let runtime = LocalRuntime::builder()
        .store(SqliteStore::open("advisor.db").await?)
        .llm_adapter(model)
        .build()?;
    let advice = runtime.run(&agent, "I am off to Bergen.").await?;
    println!("umbrella: {}, because {}", advice.umbrella, advice.reason);
    Ok(())
}

/// The model that is configured, else the script.
fn model() -> Result<(String, Arc<dyn LlmAdapter>)> {
    let registry = ProviderRegistry::from_env()?;
    if registry.is_empty() {
        eprintln!("no model is configured: a script plays it");
        return Ok(("script".to_owned(), Arc::new(script())));
    }
    let default = registry.model("").map(|model| model.to_string());
    let default = default.unwrap_or_else(|_| "openai:gpt-4.1-mini".to_owned());
    let name = std::env::var("HELIX_MODEL").unwrap_or(default);
    eprintln!("the model is {name}");
    Ok((name, Arc::new(registry)))
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([
        Reply::tool_call("weather", json!({ "city": "Bergen" })),
        Reply::finish(json!({ "umbrella": true, "reason": "it rains in Bergen until noon" })),
    ])
}
