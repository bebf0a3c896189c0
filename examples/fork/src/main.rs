//! One conversation that goes on in two ways: it is forked at a checkpoint, both go on at once with
//! different messages, and then they are compared. The model is the one that is configured, else a
//! script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::{Context as _, Result};
use helix_agents::executor::ForkOptions;
use helix_agents::prelude::*;
use helix_agents::session::Session;
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
/// The trains to a city and back.
async fn trains(place: Place) -> Result<&'static str, ToolError> {
    println!("looking for trains to {}", place.city);
    Ok("there: 08:25, 12:25; back: 15:50, 19:00")
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = SqliteStore::open("trip.db").await?;
    let agent = Agent::builder("traveller")
        .system_prompt("You recommend trains. Look for them with the tool, once.")
        .tool(trains)
        .build()?;
    let way_back = runtime(&store, ["Take the 08:25.", "The 19:00 takes you back."])?;
    let later = runtime(&store, ["Then take the 12:25."])?;

    let handle = way_back.start(&agent, "I go to Bergen.", ExecuteOptions::default()).await?;
    println!("{}", handle.result().await?.into_output()?);

    // Where the trains are known and nothing is recommended yet.
    let looked = handle.fold().await?.checkpoints().first().context("no step was closed")?.version;
    let fork = later.fork(handle.session(), ForkOptions::default().at(looked)).await?;

    // The original takes another turn. The fork goes on with the one that was under way.
    let options = ExecuteOptions::default().session(handle.session().clone());
    let original = way_back.start(&agent, "And back?", options).await?;
    let sleepy = ResumeOptions::default().message("I want to sleep late.");
    let fork = later.resume_agent(&agent, &fork, sleepy).await?;
    let (one, other) = tokio::try_join!(original.result(), fork.result())?;
    println!("original: {}", one.into_output()?);
    println!("fork:     {}", other.into_output()?);
    compare(&original.fold().await?, &fork.fold().await?);
    store.close().await;
    Ok(())
}

/// What they share was said, carried out and paid for once, by the original.
fn compare(original: &Session, fork: &Session) {
    let (one, other) = (original.transcript(), fork.transcript());
    let shared = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    println!("messages: {} and {}, {shared} of them shared", one.len(), other.len());
    println!("tool calls: {} and {}", original.tool_calls(), fork.tool_calls());
}

/// A runtime for one of the two ways. Where no model is configured, each has a script: it answers by
/// the place in the history, of which both have the first.
fn runtime<const N: usize>(store: &SqliteStore, says: [&str; N]) -> Result<LocalRuntime> {
    let looks = Reply::tool_call("trains", json!({ "city": "Bergen" }));
    let script = ScriptedLlm::new(std::iter::once(looks).chain(says.map(Reply::text)));
    let models = ProviderRegistry::from_env()?.or_adapter("script", script);
    eprintln!("the model is {}", models.model("")?);
    Ok(LocalRuntime::builder().store(store.clone()).llm(models).build()?)
}
