//! The engines that execute runs.

use std::sync::Arc;

use anyhow::Result;
use helix_agents::agent::AgentRegistry;
use helix_agents::llm::LlmAdapter;
use helix_agents::prelude::*;
use helix_agents::runtime_durable::DurableRuntime;
use helix_agents::runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents::telemetry::Telemetry;
use helix_agents_testkit::servers;

use super::discard::Discard;
use super::place::Handles;
use crate::job::{Engine, Job};

/// A runtime and its worker, if the worker is separate.
pub(super) struct Running {
    pub(super) executor: Arc<dyn AgentExecutor>,
    _worker: Option<TemporalWorker>,
}

/// The namespace of a job's runs in the engine's server.
pub(super) struct Namespace {
    pub(super) engine: Engine,
    /// The name of DBOS's application or of Temporal's task queue. It is unique per measurement.
    pub(super) name: String,
}

/// The schema of DBOS's tables.
pub(super) const SCHEMA: &str = "helix_dbos_bench";

/// The number of DBOS's connections.
pub(super) const CONNECTIONS: u32 = 16;

/// The maximum number of concurrent activities of a Temporal worker. It exceeds the number of
/// sessions.
const ACTIVITIES: usize = 1_000;

impl Namespace {
    /// Creates a new namespace for the job's engine.
    pub(super) fn new(job: &Job) -> Self {
        Self { engine: job.subject.engine(), name: servers::unique() }
    }
}

/// Starts the job's runtime as a program would.
pub(super) async fn start(
    job: &Job,
    namespace: &Namespace,
    Handles { state, streams }: Handles,
    llm: impl LlmAdapter,
    registry: AgentRegistry,
) -> Result<Running> {
    let (executor, worker): (Arc<dyn AgentExecutor>, _) = match namespace.engine {
        Engine::Local => {
            let builder = LocalRuntime::builder().state_store(state).stream_manager(streams);
            let mut builder = builder.llm(llm).durability(job.subject.durability());
            if job.telemetry {
                builder = builder.observer(Telemetry::exporter(Discard).build()?);
            }
            (Arc::new(builder.build()?), None)
        }
        Engine::Durable => {
            let builder = DurableRuntime::builder().state_store(state).stream_manager(streams);
            let builder = builder.llm(llm).registry(registry).database(servers::postgres());
            let builder = builder.schema(SCHEMA).app_name(&namespace.name).connections(CONNECTIONS);
            (Arc::new(builder.connect().await?), None)
        }
        Engine::Temporal => {
            let builder = TemporalRuntime::builder().state_store(state).stream_manager(streams);
            let builder = builder.llm(llm).registry(registry).target(servers::temporal());
            let runtime =
                builder.task_queue(&namespace.name).prefix(&namespace.name).connect().await?;
            let worker = TemporalWorker::builder(&runtime).activities(ACTIVITIES).start().await?;
            (Arc::new(runtime), Some(worker))
        }
    };
    Ok(Running { executor, _worker: worker })
}
