//! One agent on any of the runtimes. `cargo run -p helix-agents-example-runtimes -- local` needs nothing,
//! `-- durable` a PostgreSQL database (`TOURS_DATABASE`), `-- temporal` a Temporal server (`TOURS_SERVER`).
//! Kill it with `kill -9` and start it again: what it prints in the end is the same, on each of them. The
//! model is the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use helix_agents::message::Message;
use helix_agents::prelude::*;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

/// How long a process that was killed counts as alive, on all of them.
const LEASE: Duration = Duration::from_secs(3);

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

#[tool]
/// Visit a city. It takes a while.
async fn visit(place: Place) -> Result<String, ToolError> {
    eprintln!("visiting {}", place.city);
    tokio::time::sleep(Duration::from_millis(500)).await;
    eprintln!("been to {}", place.city);
    Ok(format!("{} is beautiful", place.city))
}

/// What a runtime is made of, whichever it is.
struct Parts {
    store: SqliteStore,
    models: ProviderRegistry,
    /// Who goes on with a run finds its agent here.
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
    eprintln!("the model is {}", models.model("")?);
    let parts = Parts { store: SqliteStore::open("tours.db").await?, models, agents };

    match std::env::args().nth(1).as_deref() {
        Some("local") => {
            let runtime = local(parts)?;
            tour(&runtime, &agent, "on-local").await?;
            runtime.shutdown().await;
        }
        Some("durable") => {
            let runtime = durable(parts).await?;
            tour(&runtime, &agent, "on-durable").await?;
            runtime.shutdown().await;
        }
        Some("temporal") => {
            let (runtime, worker) = temporal(parts).await?;
            tour(&runtime, &agent, "on-temporal").await?;
            worker.shutdown().await?;
            runtime.shutdown().await;
        }
        _ => bail!("usage: runtimes local | durable | temporal"),
    }
    Ok(())
}

/// Runs are tasks of this process.
fn local(parts: Parts) -> Result<LocalRuntime> {
    let runtime = LocalRuntime::builder()
        .store(parts.store)
        .llm(parts.models)
        .registry(parts.agents)
        .lease(LEASE);
    Ok(runtime.build()?)
}

/// Runs are workflows of DBOS, in this process.
async fn durable(parts: Parts) -> Result<DurableRuntime> {
    let url = std::env::var("TOURS_DATABASE")
        .context("set TOURS_DATABASE to the URL of a PostgreSQL database, `postgres://…`")?;
    let name = name();
    let runtime = DurableRuntime::builder()
        .database(url)
        .schema(format!("{name}_dbos"))
        .app_name(name)
        // There is one process of this name at a time, so what it left is its own.
        .executor_id("traveller-0")
        .store(parts.store)
        .llm(parts.models)
        .registry(parts.agents)
        .lease(LEASE);
    Ok(runtime.connect().await?)
}

/// Runs are workflows of a server, which hands them to workers: here to one, in this process.
async fn temporal(parts: Parts) -> Result<(TemporalRuntime, TemporalWorker)> {
    let server = std::env::var("TOURS_SERVER").context(
        "set TOURS_SERVER to the URL of a Temporal server: `temporal server start-dev` has http://localhost:7233",
    )?;
    let name = name();
    let runtime = TemporalRuntime::builder()
        .target(server)
        .prefix(&*name)
        .task_queue(name)
        .store(parts.store)
        .llm(parts.models)
        .registry(parts.agents)
        .lease(LEASE);
    let runtime = runtime.connect().await?;
    let worker = TemporalWorker::builder(&runtime).start().await?;
    Ok((runtime, worker))
}

/// What keeps this program apart from others on the same servers.
fn name() -> String {
    std::env::var("TOURS_NAME").unwrap_or_else(|_| "tours".to_owned())
}

/// Begins the tour, or goes on with the one that another process has begun, and tells of it.
async fn tour(executor: &dyn AgentExecutor, agent: &Agent, session: &str) -> Result<()> {
    let session = SessionId::from(session);
    match executor.handle(&session).await {
        Ok(_) => eprintln!("under way, or done"),
        Err(error) if error.code() == ErrorCode::SessionNotFound => {
            eprintln!("setting out");
            let options = ExecuteOptions::default().session(session.clone());
            executor.start(agent, "Visit Oslo, Rome and Athens.", options).await?;
        }
        Err(error) => return Err(error.into()),
    }
    let run = loop {
        // A sweep may have begun another one.
        let run = executor.handle(&session).await?;
        match timeout(Duration::from_secs(1), run.result()).await {
            Ok(ended) => break ended.map(|_| run)?,
            // In production some process does it every minute or so: what a killed process left goes on
            // then, unless the runtime has seen to that already.
            Err(_) => drop(executor.sweep().await?),
        }
    };
    tell(&run).await
}

async fn tell(run: &RunHandle) -> Result<()> {
    for message in run.fold().await?.transcript() {
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
    let used = run.usage().await?;
    println!("tokens: {} in, {} out", used.input_tokens, used.output_tokens);
    Ok(())
}

/// It answers by the place in the history, so the next process goes on with it as well.
fn script() -> ScriptedLlm {
    let go_to = |city| Reply::tool_call("visit", json!({ "city": city }));
    ScriptedLlm::new([
        go_to("Oslo"),
        go_to("Rome"),
        go_to("Athens"),
        Reply::text("All three are beautiful."),
    ])
}
