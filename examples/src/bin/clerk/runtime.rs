//! The runtimes. The server is the same on each of them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use futures_util::future::BoxFuture;
use helix_agents::AnyStore;
use helix_agents::prelude::*;

/// The kind of a runtime.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    /// Runs are tasks of this process.
    Local,
    /// Runs are DBOS workflows, recorded in the PostgreSQL database `CLERK_DATABASE`.
    #[cfg(feature = "servers")]
    Durable,
    /// Runs are workflows of the Temporal server `CLERK_TEMPORAL`.
    #[cfg(feature = "servers")]
    Temporal,
}

/// The parts that every runtime needs.
pub(crate) struct Dependencies {
    pub(crate) store: AnyStore,
    pub(crate) models: ProviderRegistry,
    pub(crate) agents: AgentRegistry,
    /// The time after which another process continues the run of one that was killed.
    pub(crate) lease: Duration,
    /// The name under which processes share the work of an engine.
    #[cfg(feature = "servers")]
    pub(crate) application: String,
}

/// A started runtime.
pub(crate) struct Started {
    pub(crate) executor: Arc<dyn AgentExecutor>,
    /// Stops what the executor does not stop itself.
    pub(crate) stop: BoxFuture<'static, Result<()>>,
}

/// Starts a runtime.
pub(crate) async fn start(kind: Kind, dependencies: Dependencies) -> Result<Started> {
    match kind {
        Kind::Local => local(dependencies),
        #[cfg(feature = "servers")]
        Kind::Durable => durable(dependencies).await,
        #[cfg(feature = "servers")]
        Kind::Temporal => temporal(dependencies).await,
    }
}

fn local(dependencies: Dependencies) -> Result<Started> {
    let runtime = LocalRuntime::builder()
        .store(dependencies.store)
        .llm(dependencies.models)
        .registry(dependencies.agents)
        .lease(dependencies.lease);
    Ok(Started { executor: Arc::new(runtime.build()?), stop: Box::pin(async { Ok(()) }) })
}

#[cfg(feature = "servers")]
async fn durable(dependencies: Dependencies) -> Result<Started> {
    let runtime = DurableRuntime::builder()
        .database(setting("CLERK_DATABASE")?)
        .app_name(dependencies.application)
        .store(dependencies.store)
        .llm(dependencies.models)
        .registry(dependencies.agents)
        .lease(dependencies.lease);
    Ok(Started { executor: Arc::new(runtime.connect().await?), stop: Box::pin(async { Ok(()) }) })
}

#[cfg(feature = "servers")]
async fn temporal(dependencies: Dependencies) -> Result<Started> {
    let runtime = TemporalRuntime::builder()
        .target(setting("CLERK_TEMPORAL")?)
        .task_queue(dependencies.application)
        .store(dependencies.store)
        .llm(dependencies.models)
        .registry(dependencies.agents)
        .lease(dependencies.lease);
    let runtime = runtime.connect().await?;
    let worker = TemporalWorker::builder(&runtime).start().await?;
    let stop = Box::pin(async move { Ok(worker.shutdown().await?) });
    Ok(Started { executor: Arc::new(runtime), stop })
}

/// Returns the value of an environment variable.
#[cfg(feature = "servers")]
fn setting(name: &str) -> Result<String> {
    use anyhow::Context as _;
    std::env::var(name).with_context(|| format!("set {name} to the URL of the server"))
}
