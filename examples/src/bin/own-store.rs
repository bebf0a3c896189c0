//! An agent on a custom store. Each start is another turn of the same session. The example uses the
//! configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its result")]

use anyhow::Result;
use helix_agents::prelude::*;
use helix_agents_examples::own_store::FileStore;
use helix_agents_test::{Reply, ScriptedLlm};

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agent = Agent::builder("counter")
        .system_prompt("Say how often you were greeted in this conversation.")
        .build()?;
    let store = FileStore::open("sessions.log").await?;
    let runtime = LocalRuntime::builder().store(store).llm(models).build()?;
    let options = ExecuteOptions::default().session("greetings");
    let run = runtime.start(&agent, "Hello!", options).await?;
    println!("{}", run.result().await?.into_output()?);
    println!("turn {}", run.load_session().await?.turn());
    Ok(())
}

/// Returns a scripted model that counts the greetings.
fn script() -> ScriptedLlm {
    let times = (1..=100).map(|times| match times {
        1 => Reply::text("You have greeted me once."),
        times => Reply::text(format!("You have greeted me {times} times.")),
    });
    ScriptedLlm::new(times)
}
