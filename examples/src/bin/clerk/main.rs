//! An agent server for the browser and for AG-UI clients. It serves the agent `clerk` under `/api`, and the page of
//! `examples/web-chat` under `/`:
//!
//! ```sh
//! npm --prefix examples/web-chat ci
//! npm --prefix examples/web-chat run build
//! cargo run -p helix-agents-examples --bin clerk -- --open --page examples/web-chat/dist
//! ```
//!
//! With the feature `servers`, the store can be on a server and the runtime can be an engine. The example uses the
//! configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

mod agent;
mod page;
mod runtime;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use axum::Router;
use clap::Parser;
use helix_agents::prelude::*;
use helix_agents::server::{AgentServer, Tokens};
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;
use tokio::net::TcpListener;

use runtime::{Dependencies, Started};

/// The options of the command line.
#[derive(Parser)]
#[command(about = "Serves the agent `clerk`.")]
struct Options {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// The name under which clients reach the server, if it is not one of this machine.
    #[arg(long)]
    host: Vec<String>,
    /// The file of bearer tokens.
    #[arg(long, required_unless_present = "open")]
    tokens: Option<PathBuf>,
    /// Accepts all requests without a token. Only for a loopback address.
    #[arg(long, conflicts_with = "tokens")]
    open: bool,
    /// The URL of the store: `memory:`, `sqlite:FILE`, `postgres://…` or `redis://…`.
    #[arg(long, default_value = "sqlite:clerk.db")]
    store: String,
    /// The runtime.
    #[arg(long, value_enum, default_value = "local")]
    runtime: runtime::Kind,
    /// The name under which processes share the work of an engine.
    #[cfg(feature = "servers")]
    #[arg(long, default_value = "clerk")]
    application: String,
    /// The lease in seconds, after which another process continues the runs of one that was killed.
    #[arg(long, default_value_t = 15)]
    lease: u64,
    /// The folder with the built page.
    #[arg(long)]
    page: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.open && !options.listen.ip().is_loopback() {
        bail!("--open is for a loopback address; use --tokens");
    }
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agents = AgentRegistry::default();
    agents.register(&agent::clerk()?)?;
    let store = open_store(&options.store).await?;
    let lease = Duration::from_secs(options.lease);
    let dependencies = Dependencies {
        store: store.clone(),
        models,
        agents: agents.clone(),
        lease,
        #[cfg(feature = "servers")]
        application: options.application,
    };
    let Started { executor, stop } = runtime::start(options.runtime, dependencies).await?;

    let builder = AgentServer::builder(executor, agents, store.clone()).sweep(lease / 3);
    let builder = options.host.into_iter().fold(builder, |builder, host| builder.host(host));
    let builder = match options.tokens {
        Some(file) => builder.bearer(Tokens::read(file)?),
        None => builder.allow_unauthenticated(),
    };
    let server = builder.build()?;
    let routes = Router::new().nest("/api", server.router());
    let routes = match options.page {
        Some(folder) => routes.merge(page::routes(&folder)?),
        None => routes,
    };
    let listener = TcpListener::bind(options.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let stopped = async move {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("Ctrl-C does not stop the server: {error}");
            std::future::pending::<()>().await;
        }
        // Ends the event streams, for which `axum::serve` would wait, and hands the runs over.
        server.shutdown().await;
    };
    // `AgentServer::serve` also limits the time of a request's head. Put a proxy in front of this one.
    axum::serve(listener, routes).with_graceful_shutdown(stopped).await?;
    stop.await?;
    store.close().await;
    Ok(())
}

/// Returns a scripted model. It picks its reply by the length of the history.
fn script() -> ScriptedLlm {
    let weather = || Reply::tool_call("get_weather", json!({ "city": "Oslo" }));
    let payment = Reply::tool_call("pay", json!({ "to": "Ann", "cents": 900 }));
    ScriptedLlm::new([
        weather(),
        Reply::text("It rains in Oslo. Shall I pay Ann's bill of 9 euros?"),
        payment,
        Reply::text("That is settled. Configure a model for a conversation of your own."),
    ])
}
