//! What carries runs out.

use std::sync::Arc;

use anyhow::Result;
use helix_agents::agent::AgentRegistry;
use helix_agents::llm::LlmAdapter;
use helix_agents::prelude::*;
use helix_agents::runtime_durable::DurableRuntime;
use helix_agents::runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents_testkit::servers;

use super::place::Handles;
use crate::job::{Engine, Job};

/// A runtime, and its worker, if that is something else.
pub(super) struct Running {
    pub(super) executor: Arc<dyn AgentExecutor>,
    _worker: Option<TemporalWorker>,
}

/// Where on its server an engine carries out a job's runs.
pub(super) struct Spot {
    pub(super) engine: Engine,
    /// Of DBOS's application, or of Temporal's task queue: each measurement has one of its own.
    pub(super) name: String,
}

/// The schema of DBOS's tables.
pub(super) const SCHEMA: &str = "helix_dbos_bench";

/// How many connections DBOS has.
pub(super) const CONNECTIONS: u32 = 16;

/// How many parts of runs a worker of Temporal carries out at once: more than there are sessions.
const ACTIVITIES: usize = 1_000;

impl Spot {
    /// A new one for the job's engine.
    pub(super) fn new(job: &Job) -> Self {
        Self { engine: job.subject.engine(), name: servers::unique() }
    }
}

/// Begins the job's runtime, as a program would.
pub(super) async fn begin(
    job: &Job,
    spot: &Spot,
    Handles { state, streams }: Handles,
    llm: impl LlmAdapter,
    registry: AgentRegistry,
) -> Result<Running> {
    let (executor, worker): (Arc<dyn AgentExecutor>, _) = match spot.engine {
        Engine::Local => {
            let builder = LocalRuntime::builder().state_store(state).stream_manager(streams);
            let runtime = builder.llm(llm).durability(job.subject.durability()).build()?;
            (Arc::new(runtime), None)
        }
        Engine::Durable => {
            let builder = DurableRuntime::builder().state_store(state).stream_manager(streams);
            let builder = builder.llm(llm).registry(registry).database(servers::postgres());
            let builder = builder.schema(SCHEMA).app_name(&spot.name).connections(CONNECTIONS);
            (Arc::new(builder.connect().await?), None)
        }
        Engine::Temporal => {
            let builder = TemporalRuntime::builder().state_store(state).stream_manager(streams);
            let builder = builder.llm(llm).registry(registry).target(servers::temporal());
            let runtime = builder.task_queue(&spot.name).prefix(&spot.name).connect().await?;
            let worker = TemporalWorker::builder(&runtime).activities(ACTIVITIES).start().await?;
            (Arc::new(runtime), Some(worker))
        }
    };
    Ok(Running { executor, _worker: worker })
}
