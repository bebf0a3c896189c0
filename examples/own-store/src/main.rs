//! An agent on a store of one's own: each start is another turn of the same session. The model is
//! the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it got")]

use std::sync::Arc;

use anyhow::Result;
use helix_agents::llm::LlmAdapter;
use helix_agents::prelude::*;
use helix_agents_example_own_store::FileStore;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};

#[tokio::main]
async fn main() -> Result<()> {
    let (name, model) = model()?;
    let agent = Agent::builder("counter")
        .system_prompt("Say how often you were greeted in this conversation.")
        .model(name)
        .build()?;
    let store = FileStore::open("sessions.log").await?;
    let runtime = LocalRuntime::builder().store(store).llm_adapter(model).build()?;
    let options = ExecuteOptions::default().session("greetings");
    let run = runtime.start(&agent, "Hello!", options).await?;
    println!("{}", run.result().await?.into_output()?);
    println!("turn {}", run.fold().await?.turn());
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
    let times = (1..=100).map(|times| match times {
        1 => Reply::text("You have greeted me once."),
        times => Reply::text(format!("You have greeted me {times} times.")),
    });
    ScriptedLlm::new(times)
}
