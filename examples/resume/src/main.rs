//! A run whose process is killed, and the next process that goes on with it: start it, kill it with
//! `kill -9`, start it again. The model is the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::Result;
use helix_agents::executor::Resumable;
use helix_agents::prelude::*;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Everything that a session knows of itself is found under its id.
const SESSION: &str = "grand-tour";

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

#[tool]
/// Visit a city. It takes a while.
async fn visit(place: Place, cx: &ToolContext) -> Result<String, ToolError> {
    println!("visiting {} (attempt {})", place.city, cx.attempt());
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("been to {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.model("")?);
    let agent = Agent::builder("traveller")
        .system_prompt("Visit the cities one after another with the tool, then say how it was.")
        .tool(visit)
        .build()?;
    let runtime = LocalRuntime::builder()
        .store(SqliteStore::open("tour.db").await?)
        .llm(models)
        .lease(Duration::from_secs(2))
        .build()?;
    let answer = travel(&runtime, &agent).await?.result().await?.into_output()?;
    println!("{answer}");
    Ok(())
}

/// Begins the tour, or goes on with it where the last process was killed.
async fn travel(runtime: &LocalRuntime, agent: &Agent) -> Result<AgentHandle<String>, Error> {
    let session = SessionId::from(SESSION);
    match runtime.can_resume(&session).await {
        Ok(Resumable::Yes | Resumable::Running) => {
            println!("going on");
            // A process that was killed counts as alive until its lease runs out.
            let options = ResumeOptions::default().wait(Duration::from_secs(5));
            runtime.resume_agent(agent, &session, options).await
        }
        Ok(_) => {
            println!("another turn of the same session");
            let options = ExecuteOptions::default().session(session);
            runtime.start(agent, "Where have you been?", options).await
        }
        Err(error) if error.code() == ErrorCode::SessionNotFound => {
            println!("setting out");
            let options = ExecuteOptions::default().session(session);
            runtime.start(agent, "Visit Oslo, Rome and Athens.", options).await
        }
        Err(error) => Err(error),
    }
}

/// It answers by the place in the history, so the next process goes on with it as well.
fn script() -> ScriptedLlm {
    let go_to = |city| Reply::tool_call("visit", json!({ "city": city }));
    ScriptedLlm::new([
        go_to("Oslo"),
        go_to("Rome"),
        go_to("Athens"),
        Reply::text("All three are beautiful."),
        Reply::text("In Oslo, Rome and Athens."),
    ])
}
