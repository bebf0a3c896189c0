//! One conversation that continues in two ways: it is forked at a checkpoint, both sessions
//! continue concurrently with different messages, and then they are compared. The example uses the
//! configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::{Context as _, Result};
use helix_agents::executor::ForkOptions;
use helix_agents::prelude::*;
use helix_agents::session::Session;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

/// Looks up the trains to a city and back.
#[tool]
async fn trains(place: Place) -> Result<&'static str, ToolError> {
    println!("looking up trains to {}", place.city);
    Ok("there: 08:25, 12:25; back: 15:50, 19:00")
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = SqliteStore::open("trip.db").await?;
    let agent = Agent::builder("traveller")
        .system_prompt("You recommend trains. Look them up with the tool, once.")
        .tool(trains)
        .build()?;
    let original_runtime = runtime(&store, ["Take the 08:25.", "The 19:00 takes you back."])?;
    let fork_runtime = runtime(&store, ["Then take the 12:25."])?;

    let handle = original_runtime
        .start(&agent, "I want to go to Bergen.", ExecuteOptions::default())
        .await?;
    println!("{}", handle.result().await?.into_output()?);

    // The first checkpoint: the trains are known, but nothing is recommended yet.
    let checkpoint = handle
        .load_session()
        .await?
        .checkpoints()
        .first()
        .context("the run has no checkpoint")?
        .version;
    let fork =
        fork_runtime.fork(handle.session(), ForkOptions::default().checkpoint(checkpoint)).await?;

    // The original starts another turn. The fork continues the turn that was active at the
    // checkpoint.
    let options = ExecuteOptions::default().session(handle.session().clone());
    let original = original_runtime.start(&agent, "And back?", options).await?;
    let options = ResumeOptions::default().message("I want to sleep late.");
    let fork = fork_runtime.resume_agent(&agent, &fork, options).await?;
    let (original_result, fork_result) = tokio::try_join!(original.result(), fork.result())?;
    println!("original: {}", original_result.into_output()?);
    println!("fork:     {}", fork_result.into_output()?);
    compare(&original.load_session().await?, &fork.load_session().await?);
    store.close().await;
    Ok(())
}

/// Compares the two sessions. Their shared history was executed and paid for once, by the original.
fn compare(original: &Session, fork: &Session) {
    let (original_messages, fork_messages) = (original.transcript(), fork.transcript());
    let shared = original_messages.iter().zip(fork_messages).take_while(|(a, b)| a == b).count();
    println!(
        "messages: {} and {}, {shared} of them shared",
        original_messages.len(),
        fork_messages.len()
    );
    println!("tool calls: {} and {}", original.usage().tool_calls, fork.usage().tool_calls);
}

/// Builds the runtime of one of the two sessions. Without a configured model, each has its own
/// script. Both scripts start with the same tool call, because that part of the history is shared.
fn runtime<const N: usize>(store: &SqliteStore, replies: [&str; N]) -> Result<LocalRuntime> {
    let first = Reply::tool_call("trains", json!({ "city": "Bergen" }));
    let script = ScriptedLlm::new(std::iter::once(first).chain(replies.map(Reply::text)));
    let models = ProviderRegistry::from_env()?.or_adapter("script", script);
    eprintln!("the model is {}", models.default_model()?);
    Ok(LocalRuntime::builder().store(store.clone()).llm(models).build()?)
}
