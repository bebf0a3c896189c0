//! The first agent of the guide, with one tool and a typed output. The example uses the configured
//! model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its result")]

use anyhow::Result;
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

#[derive(Debug, Deserialize, JsonSchema)]
struct Advice {
    umbrella: bool,
    reason: String,
}

/// Returns today's weather in a city.
#[tool]
async fn weather(place: Place) -> Result<String, ToolError> {
    Ok(format!("heavy rain in {} until noon", place.city))
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agent = Agent::builder("advisor")
        .system_prompt("Look at the weather, then say whether to take an umbrella.")
        .tool(weather)
        .output::<Advice>()
        .build()?;
    let runtime = LocalRuntime::builder()
        .store(SqliteStore::open("advisor.db").await?)
        .llm(models)
        .build()?;
    let advice = runtime.run(&agent, "I am off to Bergen.").await?;
    println!("umbrella: {}, because {}", advice.umbrella, advice.reason);
    Ok(())
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([
        Reply::tool_call("weather", json!({ "city": "Bergen" })),
        Reply::finish(json!({ "umbrella": true, "reason": "it rains in Bergen until noon" })),
    ])
}
