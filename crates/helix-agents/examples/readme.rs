//! The example of the README, word for word.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use helix_agents::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

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

/// Today's weather in a city.
#[tool]
async fn weather(place: Place) -> Result<String, ToolError> {
    Ok(format!("heavy rain in {} until noon", place.city))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let agent = Agent::builder("advisor")
        .system_prompt("Look at the weather, then say whether to take an umbrella.")
        .tool(weather)
        .output::<Advice>()
        .build()?;
    let runtime = LocalRuntime::builder()
        .store(SqliteStore::open("advisor.db").await?)
        .llm(ProviderRegistry::from_env()?)
        .build()?;
    let advice = runtime.run(&agent, "I am off to Bergen.").await?;
    println!("umbrella: {}, because {}", advice.umbrella, advice.reason);
    Ok(())
}
