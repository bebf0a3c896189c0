//! One agent on any of the runtimes:
//!
//! ```sh
//! cargo run -p helix-agents-examples --features servers --bin runtimes -- local
//! ```
//!
//! `local` needs no server, `durable` needs a PostgreSQL database (`TOURS_DATABASE`), and `temporal` needs a Temporal
//! server (`TOURS_SERVER`). Kill the example with `kill -9` and start it again: its final output is the same on each
//! runtime. The example uses the configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use helix_agents::message::Message;
use helix_agents::prelude::*;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

/// The lease: the time after which the run of a killed process can be taken over.
const LEASE: Duration = Duration::from_secs(3);

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

/// Visits a city. This takes half a second.
#[tool]
async fn visit(place: Place) -> Result<String, ToolError> {
    eprintln!("visiting {}", place.city);
    tokio::time::sleep(Duration::from_millis(500)).await;
    eprintln!("visited {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

/// The dependencies that all runtimes need.
struct Dependencies {
    store: SqliteStore,
    models: ProviderRegistry,
    /// The agents by name. A process that recovers a run finds its agent here.
    agents: AgentRegistry,
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder("traveller")
        .system_prompt("Visit the cities one after another with the tool, then say how it was.")
        .tool(visit)
        .build()?;
    let agents = AgentRegistry::default();
    agents.register(&agent)?;
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let dependencies = Dependencies { store: SqliteStore::open("tours.db").await?, models, agents };

    match std::env::args().nth(1).as_deref() {
        Some("local") => {
            let runtime = local(dependencies)?;
            tour(&runtime, &agent, "on-local").await?;
            runtime.shutdown().await;
        }
        Some("durable") => {
            let runtime = durable(dependencies).await?;
            tour(&runtime, &agent, "on-durable").await?;
            runtime.shutdown().await;
        }
        Some("temporal") => {
            let (runtime, worker) = temporal(dependencies).await?;
            tour(&runtime, &agent, "on-temporal").await?;
            worker.shutdown().await?;
            runtime.shutdown().await;
        }
        _ => bail!("usage: runtimes local | durable | temporal"),
    }
    Ok(())
}

/// Builds a runtime whose runs are tasks of this process.
fn local(dependencies: Dependencies) -> Result<LocalRuntime> {
    let runtime = LocalRuntime::builder()
        .store(dependencies.store)
        .llm(dependencies.models)
        .registry(dependencies.agents)
        .lease(LEASE);
    Ok(runtime.build()?)
}

/// Connects a runtime whose runs are DBOS workflows in this process.
async fn durable(dependencies: Dependencies) -> Result<DurableRuntime> {
    let url = std::env::var("TOURS_DATABASE")
        .context("set TOURS_DATABASE to the URL of a PostgreSQL database, `postgres://…`")?;
    let name = name();
    let runtime = DurableRuntime::builder()
        .database(url)
        .schema(format!("{name}_dbos"))
        .app_name(name)
        // Only one process with this name runs at a time, so it may recover all runs of its
        // predecessor.
        .executor_id("traveller-0")
        .store(dependencies.store)
        .llm(dependencies.models)
        .registry(dependencies.agents)
        .lease(LEASE);
    Ok(runtime.connect().await?)
}

/// Connects a runtime whose runs are workflows of a Temporal server, and starts a worker for them
/// in this process.
async fn temporal(dependencies: Dependencies) -> Result<(TemporalRuntime, TemporalWorker)> {
    let server = std::env::var("TOURS_SERVER").context(
        "set TOURS_SERVER to the URL of a Temporal server; `temporal server start-dev` listens \
         on http://localhost:7233",
    )?;
    let name = name();
    let runtime = TemporalRuntime::builder()
        .target(server)
        .prefix(&*name)
        .task_queue(name)
        .store(dependencies.store)
        .llm(dependencies.models)
        .registry(dependencies.agents)
        .lease(LEASE);
    let runtime = runtime.connect().await?;
    let worker = TemporalWorker::builder(&runtime).start().await?;
    Ok((runtime, worker))
}

/// Returns the name that separates this program from others on the same servers.
fn name() -> String {
    std::env::var("TOURS_NAME").unwrap_or_else(|_| "tours".to_owned())
}

/// Starts the tour, or continues one that another process started, and prints its history.
async fn tour(executor: &dyn AgentExecutor, agent: &Agent, session: &str) -> Result<()> {
    let session = SessionId::from(session);
    match executor.handle(&session).await {
        Ok(_) => eprintln!("already started"),
        Err(error) if error.code() == ErrorCode::SessionNotFound => {
            eprintln!("starting the tour");
            let options = ExecuteOptions::default().session(session.clone());
            executor.start(agent, "Visit Oslo, Rome and Athens.", options).await?;
        }
        Err(error) => return Err(error.into()),
    }
    let run = loop {
        // A sweep may have replaced the run, so get the current one.
        let run = executor.handle(&session).await?;
        match timeout(Duration::from_secs(1), run.result()).await {
            Ok(ended) => break ended.map(|_| run)?,
            // In production, a process sweeps about once a minute. A sweep resumes the runs of
            // killed processes, unless the runtime has already recovered them.
            Err(_) => drop(executor.sweep().await?),
        }
    };
    print_history(&run).await
}

/// Prints the messages and the token usage of a session.
async fn print_history(run: &RunHandle) -> Result<()> {
    for message in run.load_session().await?.transcript() {
        match &**message {
            Message::System { .. } => {}
            Message::User(user) => println!("user: {}", user.content),
            Message::Assistant(reply) => {
                for call in &reply.tool_calls {
                    let arguments = serde_json::to_string(&call.arguments.as_json())?;
                    println!("assistant: {} {arguments} as {}", call.name, call.id);
                }
                if let Some(text) = &reply.content {
                    println!("assistant: {text}");
                }
            }
            Message::Tool(result) => println!("{}: {}", result.tool_call_id, result.content),
        }
    }
    let tokens = run.usage().await?.tokens;
    println!("tokens: {} in, {} out", tokens.input_tokens, tokens.output_tokens);
    Ok(())
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
    ])
}
