//! A run whose process is killed and that the next process resumes. Start the example, kill it with
//! `kill -9`, and start it again. The example uses the configured model, or a scripted one if none
//! is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::Result;
use helix_agents::prelude::*;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The session id. A restarted process finds its session with it.
const SESSION: &str = "grand-tour";

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

/// Visits a city. This takes a second.
#[tool]
async fn visit(place: Place, cx: &ToolContext) -> Result<String, ToolError> {
    println!("visiting {} (attempt {})", place.city, cx.attempt());
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("visited {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
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

/// Starts the tour, or resumes it where the previous process was killed.
async fn travel(runtime: &LocalRuntime, agent: &Agent) -> Result<RunHandle<String>, Error> {
    let session = SessionId::from(SESSION);
    match runtime.can_resume(&session).await {
        Ok(Resumable::Yes | Resumable::Running) => {
            println!("resuming");
            // The run of a killed process counts as running until its lease expires.
            let options = ResumeOptions::default().wait(Duration::from_secs(5));
            runtime.resume_agent(agent, &session, options).await
        }
        Ok(_) => {
            println!("starting another turn");
            let options = ExecuteOptions::default().session(session);
            runtime.start(agent, "Where have you been?", options).await
        }
        Err(error) if error.code() == ErrorCode::SessionNotFound => {
            println!("starting the tour");
            let options = ExecuteOptions::default().session(session);
            runtime.start(agent, "Visit Oslo, Rome and Athens.", options).await
        }
        Err(error) => Err(error),
    }
}

/// Returns a scripted model. It picks its reply by the length of the history, so each process
/// continues where the previous one stopped.
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
