//! The runtimes that stories are told on, by URL. A new one is a line in [`KINDS`].

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents::agent::AgentRegistry;
use helix_agents::executor::AgentExecutor;
use helix_agents::llm::LlmAdapter;
use helix_agents::runtime_durable::DurableRuntime;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents::session::Durability;
use helix_agents_testkit::servers;
use helix_agents_testkit::trees::Stores;

/// What a runtime is made of, whichever it is.
#[derive(Debug)]
pub struct World {
    /// Where logs and streams are kept.
    pub store: Stores,
    /// What answers.
    pub llm: Arc<dyn LlmAdapter>,
    /// The agents.
    pub registry: AgentRegistry,
    /// When facts are appended.
    pub durability: Durability,
    /// How long an owner counts as alive.
    pub lease: Duration,
    /// How long what was stopped may take to end.
    pub grace: Duration,
}

/// A runtime, and whatever carries its runs out in this process.
#[derive(Debug)]
pub struct Opened {
    /// Its executor.
    pub executor: Arc<dyn AgentExecutor>,
    _worker: Option<TemporalWorker>,
}

/// A kind of runtime. Its URLs are `NAME:`, or `NAME:CORNER@SERVER` of one with an engine.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// The engine's server for tests.
    server: Option<fn() -> String>,
    open: fn(String, String, World) -> BoxFuture<'static, Result<Opened>>,
}

/// All kinds.
#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    Kind { name: "local",    server: None,                    open: |_, _, world| async { local(world) }.boxed() },
    Kind { name: "durable",  server: Some(servers::postgres), open: |app, server, world| async move { durable(&app, server, world).await }.boxed() },
    Kind { name: "temporal", server: Some(servers::temporal), open: |queue, server, world| async move { temporal(&queue, server, world).await }.boxed() },
];

/// The schema of DBOS's tables that all stories share: to make one takes longer than most of them.
const SCHEMA: &str = "helix_dbos_e2e";

fn local(world: World) -> Result<Opened> {
    let runtime = LocalRuntime::builder()
        .state_store(world.store.state)
        .stream_manager(world.store.streams)
        .llm_adapter(world.llm)
        .registry(world.registry)
        .lease(world.lease)
        .grace(world.grace)
        .durability(world.durability)
        .build()?;
    Ok(Opened { executor: Arc::new(runtime), _worker: None })
}

async fn durable(app: &str, server: String, world: World) -> Result<Opened> {
    let runtime = DurableRuntime::builder()
        .state_store(world.store.state)
        .stream_manager(world.store.streams)
        .llm_adapter(world.llm)
        .registry(world.registry)
        .lease(world.lease)
        .grace(world.grace)
        .database(server)
        .schema(SCHEMA)
        .app_name(app)
        .connections(3)
        .connect()
        .await?;
    Ok(Opened { executor: Arc::new(runtime), _worker: None })
}

async fn temporal(queue: &str, server: String, world: World) -> Result<Opened> {
    let runtime = TemporalRuntime::builder()
        .state_store(world.store.state)
        .stream_manager(world.store.streams)
        .llm_adapter(world.llm)
        .registry(world.registry)
        .lease(world.lease)
        .grace(world.grace)
        .target(server)
        .task_queue(queue)
        .prefix(queue)
        .connect()
        .await?;
    let worker = TemporalWorker::builder(&runtime).start().await?;
    Ok(Opened { executor: Arc::new(runtime), _worker: Some(worker) })
}

impl Kind {
    /// The kind of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Self> {
        let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let found = KINDS.iter().find(|kind| kind.name == name);
        found.with_context(|| format!("there is no runtime `{name}`; known are: {}", known()))
    }

    /// The URL of a corner of its own on the server that its engine needs, if any.
    #[must_use]
    pub fn place(&self) -> String {
        self.server.map_or_else(|| format!("{}:", self.name), |server| self.place_on(&server()))
    }

    /// The same on another server.
    #[must_use]
    pub fn place_on(&self, server: &str) -> String {
        format!("{}:{}@{server}", self.name, servers::unique())
    }
}

/// Opens the runtime at a URL.
///
/// # Errors
/// If the URL names no known kind, and the runtime's.
pub async fn open(url: &str, world: World) -> Result<Opened> {
    let Some((name, place)) = url.split_once(':') else {
        bail!("`{url}` is no URL of a runtime, such as local:");
    };
    let (corner, server) = place.split_once('@').unwrap_or_default();
    (Kind::named(name)?.open)(corner.to_owned(), server.to_owned(), world).await
}
