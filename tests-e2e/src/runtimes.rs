//! The runtimes of the end-to-end tests, by URL. A new runtime is a line in [`KINDS`].

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents::RuntimeBuilder as _;
use helix_agents::agent::AgentRegistry;
use helix_agents::executor::AgentExecutor;
use helix_agents::llm::LlmAdapter;
use helix_agents::observer::LogObserver;
use helix_agents::runtime_durable::DurableRuntime;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents::session::Durability;
use helix_agents_testkit::servers;
use helix_agents_testkit::trees::Stores;

/// The configuration of a runtime of any kind.
#[derive(Debug)]
pub struct RuntimeConfig {
    /// The store of logs and streams.
    pub store: Stores,
    /// The adapter that answers model calls.
    pub llm: Arc<dyn LlmAdapter>,
    /// The agents.
    pub registry: AgentRegistry,
    /// The durability mode, which decides when events are appended.
    pub durability: Durability,
    /// The lease duration.
    pub lease: Duration,
    /// The time that cancelled work may take to stop.
    pub grace: Duration,
    /// The observers of the log.
    pub observers: Vec<Arc<dyn LogObserver>>,
}

/// A runtime, and the worker that executes its runs in this process, if it needs one.
#[derive(Debug)]
pub struct Opened {
    /// The executor of the runtime.
    pub executor: Arc<dyn AgentExecutor>,
    _worker: Option<TemporalWorker>,
}

/// A kind of runtime. Its URL is `NAME:`, or `NAME:NAMESPACE@SERVER` if it has an engine.
#[derive(Debug)]
pub struct Kind {
    /// The name of the kind.
    pub name: &'static str,
    /// Returns the URL of the engine's server for tests.
    server: Option<fn() -> String>,
    open: fn(String, String, RuntimeConfig) -> BoxFuture<'static, Result<Opened>>,
}

/// All kinds of runtimes.
#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    Kind { name: "local",    server: None,                    open: |_, _, config| async { local(config) }.boxed() },
    Kind { name: "durable",  server: Some(servers::postgres), open: |app, server, config| async move { durable(&app, server, config).await }.boxed() },
    Kind { name: "temporal", server: Some(servers::temporal), open: |queue, server, config| async move { temporal(&queue, server, config).await }.boxed() },
];

/// The schema of the DBOS tables that all tests share. Creating a schema takes longer than most tests.
const SCHEMA: &str = "helix_dbos_e2e";

fn local(config: RuntimeConfig) -> Result<Opened> {
    let runtime = LocalRuntime::builder()
        .state_store(config.store.state)
        .stream_manager(config.store.streams)
        .llm_adapter(config.llm)
        .registry(config.registry)
        .lease(config.lease)
        .grace(config.grace)
        .observers(config.observers)
        .durability(config.durability)
        .build()?;
    Ok(Opened { executor: Arc::new(runtime), _worker: None })
}

async fn durable(app: &str, server: String, config: RuntimeConfig) -> Result<Opened> {
    let runtime = DurableRuntime::builder()
        .state_store(config.store.state)
        .stream_manager(config.store.streams)
        .llm_adapter(config.llm)
        .registry(config.registry)
        .lease(config.lease)
        .grace(config.grace)
        .observers(config.observers)
        .database(server)
        .schema(SCHEMA)
        .app_name(app)
        .connections(3)
        .connect()
        .await?;
    Ok(Opened { executor: Arc::new(runtime), _worker: None })
}

async fn temporal(queue: &str, server: String, config: RuntimeConfig) -> Result<Opened> {
    let runtime = TemporalRuntime::builder()
        .state_store(config.store.state)
        .stream_manager(config.store.streams)
        .llm_adapter(config.llm)
        .registry(config.registry)
        .lease(config.lease)
        .grace(config.grace)
        .observers(config.observers)
        .target(server)
        .task_queue(queue)
        .prefix(queue)
        .connect()
        .await?;
    let worker = TemporalWorker::builder(&runtime).start().await?;
    Ok(Opened { executor: Arc::new(runtime), _worker: Some(worker) })
}

impl Kind {
    /// Returns the kind with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Self> {
        let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let found = KINDS.iter().find(|kind| kind.name == name);
        found.with_context(|| format!("unknown runtime `{name}`; known runtimes: {}", known()))
    }

    /// Returns the URL of a new namespace on the test server of the engine, or `NAME:` if there is no engine.
    #[must_use]
    pub fn place(&self) -> String {
        self.server.map_or_else(|| format!("{}:", self.name), |server| self.place_on(&server()))
    }

    /// Returns the URL of a new namespace on this server.
    #[must_use]
    pub fn place_on(&self, server: &str) -> String {
        format!("{}:{}@{server}", self.name, servers::unique())
    }
}

/// Opens the runtime at a URL.
///
/// # Errors
/// If the URL names no known kind, or the runtime cannot be opened.
pub async fn open(url: &str, config: RuntimeConfig) -> Result<Opened> {
    let Some((name, place)) = url.split_once(':') else {
        bail!("`{url}` is not the URL of a runtime, such as local:");
    };
    let (namespace, server) = place.split_once('@').unwrap_or_default();
    (Kind::named(name)?.open)(namespace.to_owned(), server.to_owned(), config).await
}
