//! `helix serve`: serves the agents of agent files over HTTP.

mod engine;
mod models;
pub(crate) mod runtime_kind;
pub(crate) mod settings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::agent::AgentRegistry;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::server::{AgentServer, Limits, Tokens};
use helix_agents::terminal::{Screen, notice};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use self::engine::Engine;
use self::models::AgentModels;
use self::runtime_kind::RuntimeKind;
use self::settings::ServeSettings;
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::location::Location;
use crate::place::{Access, Place};
use crate::session_agent::{Overrides, SessionAgent};
use crate::signals::Signals;

/// The default address, which only this machine can reach.
const LISTEN: &str = "127.0.0.1:8080";

/// The default time that runs in progress get to reach a step boundary.
const GRACE: Duration = Duration::from_secs(20);

/// The time that a shutdown takes beyond the grace period.
const MARGIN: Duration = Duration::from_secs(5);

/// The options of `helix serve`. The table `[serve]` of helix.toml has the same ones.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The agent files. Clients name an agent by the `name` in its file.
    #[arg(value_name = "AGENT_FILE", required = true)]
    agents: Vec<PathBuf>,
    /// The address to listen on. Default: 127.0.0.1:8080. Other machines than this one need tokens.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The file of tokens, as `helix token` writes it. Default: no authentication, on this machine only.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// A name of the server in the requests of clients. Default: only the names of this machine.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// An origin whose pages may call the server, such as https://app.example.com.
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// The runtime that executes runs. Default: local.
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<RuntimeKind>,
    /// The server of the runtime's engine: the URL of DBOS's PostgreSQL database, or the address of Temporal. Default for
    /// Temporal: http://127.0.0.1:7233.
    #[arg(long, value_name = "URL")]
    engine: Option<String>,
    /// The time that runs get to stop after SIGTERM or Ctrl-C, in seconds. Default: 20.
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
}

impl ServeArgs {
    /// Returns the agent files, and the options together with those of helix.toml. The command line takes precedence.
    fn with(self, file: ServeSettings) -> (Vec<PathBuf>, ServeSettings) {
        let or = |given: Vec<String>, other| if given.is_empty() { other } else { given };
        let settings = ServeSettings {
            listen: self.listen.or(file.listen),
            tokens: self.tokens.or(file.tokens),
            hosts: or(self.hosts, file.hosts),
            origins: or(self.origins, file.origins),
            runtime: self.runtime.or(file.runtime),
            engine: self.engine.or(file.engine),
            grace: self.grace.or(file.grace),
        };
        (self.agents, settings)
    }
}

/// Runs the command: until SIGTERM or Ctrl-C, and then until runs and connections have stopped. A second signal ends the
/// program immediately.
pub(crate) async fn run(args: ServeArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let (files, settings) = args.with(ConfigFile::read()?.serve);
    let address = match settings.listen {
        Some(address) => address,
        None => LISTEN.parse().context("the default address")?,
    };
    if settings.tokens.is_none() && !address.ip().is_loopback() {
        let message = "other machines can reach this address; add tokens with `helix token add` and pass their file \
                       with --tokens";
        return Err(Error::new(ErrorCode::ConfigInvalid, message)
            .with_context("listen", address)
            .into());
    }
    settings.runtime.unwrap_or_default().check_engine(settings.engine.as_deref())?;
    // Reports problems of the options and the files before a database is created.
    db.database()?;
    let tokens = settings.tokens.as_deref().map(Tokens::read).transpose()?;
    let agents = Agents::read(&files).await?;
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("the server cannot listen on {address}"))?;
    let place = Place::open(db, Access::Create).await?;
    let served = serve(agents, tokens, &settings, listener, &place, screen).await;
    place.close().await;
    served
}

/// The agents and their models.
#[derive(Debug)]
struct Agents {
    registry: AgentRegistry,
    models: AgentModels,
}

impl Agents {
    async fn read(files: &[PathBuf]) -> Result<Self> {
        let (registry, mut models) = (AgentRegistry::default(), AgentModels::default());
        for file in files {
            let session_agent = SessionAgent::of_file(file, Overrides::default()).await?;
            let agent = Arc::clone(session_agent.agent());
            let name = Arc::clone(agent.name());
            registry.register_factory(&name, move |_| Ok(Arc::clone(&agent)))?;
            models.insert(&name, session_agent.adapter());
        }
        Ok(Self { registry, models })
    }
}

async fn serve(
    agents: Agents,
    tokens: Option<Tokens>,
    settings: &ServeSettings,
    listener: TcpListener,
    place: &Place,
    screen: &Screen,
) -> Result<Exit> {
    let address = listener.local_addr()?;
    let mut signals = Signals::listen()?;
    let names = agents.registry.names();
    let grace = settings.grace.map_or(GRACE, Duration::from_secs);
    let kind = settings.runtime.unwrap_or_default();
    let engine = Engine::open(kind, settings.engine.as_deref(), &agents, place, grace).await?;
    let store = place.store()?;
    let server = build(&engine, agents.registry, tokens, settings, address, store, grace)?;
    let url = format!("http://{address}");
    if screen.is_json() {
        screen.json(&json!({ "listening": url, "agents": names }))?;
    } else {
        screen.field("agents", names.join(", "))?;
        screen.field("url", &url)?;
    }
    if address.ip().is_unspecified() && settings.hosts.is_empty() {
        notice("the server accepts only requests for localhost; name its host with --host");
    }
    let ended = until_stopped(server, listener, &mut signals, screen).await;
    if matches!(ended, Ok(Exit::Interrupted)) {
        return ended;
    }
    let closed = tokio::select! {
        closed = engine.close() => closed,
        _ = signals.next() => return Ok(Exit::Interrupted),
    };
    let exit = ended?;
    closed?;
    Ok(exit)
}

/// Serves until a signal, and then until runs and connections have stopped.
async fn until_stopped(
    server: AgentServer,
    listener: TcpListener,
    signals: &mut Signals,
    screen: &Screen,
) -> Result<Exit> {
    let (stop, stopped) = oneshot::channel::<()>();
    let mut served = pin!(server.serve(listener, async { drop(stopped.await) }));
    tokio::select! {
        ended = &mut served => return ended.map(|()| Exit::Completed).map_err(Into::into),
        _ = signals.next() => {}
    }
    if !screen.is_json() {
        notice("shutting down; another signal ends the program immediately");
    }
    drop(stop);
    tokio::select! {
        ended = served => ended.map(|()| Exit::Completed).map_err(Into::into),
        _ = signals.next() => Ok(Exit::Interrupted),
    }
}

fn build(
    engine: &Engine,
    registry: AgentRegistry,
    tokens: Option<Tokens>,
    settings: &ServeSettings,
    address: SocketAddr,
    store: &AnyStore,
    grace: Duration,
) -> Result<AgentServer> {
    let mut limits = Limits::default();
    limits.shutdown = grace.saturating_add(MARGIN);
    let executor = Arc::clone(&engine.executor);
    let mut builder = AgentServer::builder(executor, registry, store.clone()).limits(limits);
    if !address.ip().is_unspecified() {
        let host = match address.ip() {
            std::net::IpAddr::V6(address) => format!("[{address}]"),
            address => address.to_string(),
        };
        builder = builder.host(host);
    }
    for host in &settings.hosts {
        builder = builder.host(host);
    }
    for origin in &settings.origins {
        builder = builder.origin(origin);
    }
    Ok(match tokens {
        Some(tokens) => builder.bearer(tokens).build()?,
        None => builder.allow_unauthenticated().build()?,
    })
}
