//! The runtime that executes the runs of `helix serve`.

use std::sync::Arc;
use std::time::Duration;

use helix_agents::RuntimeBuilder;
use helix_agents::error::Result;
#[cfg(not(all(feature = "runtime-durable", feature = "runtime-temporal")))]
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::AgentExecutor;
use helix_agents::prelude::LocalRuntime;

use super::Agents;
use super::runtime_kind::RuntimeKind;
use crate::live_export;
use crate::place::Place;
use crate::session_agent::LEASE;

/// A runtime, and the worker of its engine, if it has one.
pub(super) struct Engine {
    pub(super) executor: Arc<dyn AgentExecutor>,
    #[cfg(feature = "runtime-temporal")]
    worker: Option<helix_agents::runtime_temporal::TemporalWorker>,
}

impl Engine {
    /// Opens the runtime. `server` is the [checked](RuntimeKind::check_engine) address of its engine.
    pub(super) async fn open(
        kind: RuntimeKind,
        server: Option<&str>,
        agents: &Agents,
        place: &Place,
        grace: Duration,
    ) -> Result<Self> {
        match kind {
            RuntimeKind::Local => {
                let runtime = configured(LocalRuntime::builder(), agents, place, grace)?.build()?;
                Ok(Self::of(runtime))
            }
            RuntimeKind::Durable => durable(server.unwrap_or_default(), agents, place, grace).await,
            RuntimeKind::Temporal => {
                temporal(server.unwrap_or(TEMPORAL), agents, place, grace).await
            }
        }
    }

    fn of(executor: impl AgentExecutor + 'static) -> Self {
        Self {
            executor: Arc::new(executor),
            #[cfg(feature = "runtime-temporal")]
            worker: None,
        }
    }

    /// Stops the worker. The work that it has not finished is left to other workers.
    #[cfg_attr(
        not(feature = "runtime-temporal"),
        expect(clippy::unused_async, reason = "no worker")
    )]
    pub(super) async fn close(self) -> Result<()> {
        #[cfg(feature = "runtime-temporal")]
        if let Some(worker) = self.worker {
            worker.shutdown().await?;
        }
        Ok(())
    }
}

/// The default address of a Temporal server.
const TEMPORAL: &str = "http://127.0.0.1:7233";

/// The name under which the servers of one application share their work.
#[cfg(any(feature = "runtime-durable", feature = "runtime-temporal"))]
const APPLICATION: &str = "helix";

fn configured<B: RuntimeBuilder>(
    builder: B,
    agents: &Agents,
    place: &Place,
    grace: Duration,
) -> Result<B> {
    let builder = live_export::observed(builder, place.store()?, place.telemetry());
    let builder = builder.llm(agents.models.clone()).registry(agents.registry.clone());
    Ok(builder.lease(LEASE).grace(grace))
}

#[cfg(feature = "runtime-durable")]
async fn durable(url: &str, agents: &Agents, place: &Place, grace: Duration) -> Result<Engine> {
    use helix_agents::runtime_durable::DurableRuntime;

    let builder = DurableRuntime::builder().database(url).app_name(APPLICATION);
    Ok(Engine::of(configured(builder, agents, place, grace)?.connect().await?))
}

#[cfg(not(feature = "runtime-durable"))]
#[expect(clippy::unused_async, reason = "with the feature it connects to a server")]
async fn durable(_: &str, _: &Agents, _: &Place, _: Duration) -> Result<Engine> {
    Err(not_built("runtime-durable"))
}

#[cfg(feature = "runtime-temporal")]
async fn temporal(server: &str, agents: &Agents, place: &Place, grace: Duration) -> Result<Engine> {
    use helix_agents::runtime_temporal::{TemporalRuntime, TemporalWorker};

    let builder = TemporalRuntime::builder().target(server).task_queue(APPLICATION);
    let runtime = configured(builder, agents, place, grace)?.connect().await?;
    let worker = TemporalWorker::builder(&runtime).graceful_shutdown(grace).start().await?;
    Ok(Engine { executor: Arc::new(runtime), worker: Some(worker) })
}

#[cfg(not(feature = "runtime-temporal"))]
#[expect(clippy::unused_async, reason = "with the feature it connects to a server")]
async fn temporal(_: &str, _: &Agents, _: &Place, _: Duration) -> Result<Engine> {
    Err(not_built("runtime-temporal"))
}

#[cfg(not(all(feature = "runtime-durable", feature = "runtime-temporal")))]
fn not_built(feature: &str) -> Error {
    let message =
        format!("this `helix` was built without the runtime; build it with `--features {feature}`");
    Error::new(ErrorCode::Unsupported, message)
}
