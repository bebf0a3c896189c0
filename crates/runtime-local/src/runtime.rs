//! The local runtime and its engine, which executes runs as tasks of this process.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, Result};
use helix_agents_runtime::{
    Engine, LiveRun, RunRef, RunRegistration, Runtime, RuntimeContext, StartedRun, forward_executor,
};

use crate::builder::LocalRuntimeBuilder;
use crate::step_site;

/// A runtime that executes runs as tasks of this process. Cheap to clone.
///
/// # Durability
/// Recorded events are as durable as the store. The runs of a killed process can be continued once
/// their leases have expired, by
/// [`recover`](helix_agents_core::executor::AgentExecutor::recover) of another local runtime or by a
/// `resume` from any process.
///
/// # Examples
/// ```
/// use helix_agents_core::agent::Agent;
/// use helix_agents_core::executor::AgentExecutorExt as _;
/// use helix_agents_runtime_local::LocalRuntime;
/// use helix_agents_store_memory::MemoryStore;
/// use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
///
/// # #[tokio::main]
/// # async fn main() -> helix_agents_core::error::Result<()> {
/// let agent = Agent::builder("guide").system_prompt("You know cities.").build()?;
/// let model = ScriptedLlm::new([Reply::text("It is Oslo.")]);
/// let runtime = LocalRuntime::builder().store(MemoryStore::new()).llm(model).build()?;
/// assert_eq!(runtime.run(&agent, "What is Norway's capital?").await?, "It is Oslo.");
/// runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LocalRuntime {
    runtime: Runtime,
}

impl LocalRuntime {
    /// Returns a builder for a local runtime.
    pub fn builder() -> LocalRuntimeBuilder {
        LocalRuntimeBuilder::default()
    }

    pub(crate) fn new(context: Arc<RuntimeContext>) -> Self {
        let engine = Tasks { context: Arc::clone(&context) };
        Self { runtime: Runtime::new(context, Arc::new(engine)) }
    }

    /// Shuts the runtime down and returns when all of its runs have stopped. A run stops before its next effect; an
    /// effect that is still running after the grace period is cancelled. Later starts fail with
    /// [`Closed`](helix_agents_core::error::ErrorCode::Closed).
    ///
    /// The log records no end of the stopped runs. Their leases are released, so that another process can continue them
    /// immediately.
    ///
    /// # Cancel safety
    /// If the future is dropped, runs still stop before their next effect, but running effects are not cancelled.
    pub async fn shutdown(&self) {
        let context = self.runtime.context();
        context.tasks.end(context.grace).await;
    }
}

forward_executor!(LocalRuntime);

/// An engine that executes each run in a task of its own.
#[derive(Debug)]
struct Tasks {
    context: Arc<RuntimeContext>,
}

#[async_trait]
impl Engine for Tasks {
    fn kind(&self) -> &'static str {
        "local"
    }

    async fn drive(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let live = Arc::clone(started.driver.live());
        // Ends all waits for the run even if the task is dropped or panics.
        let registration = RunRegistration::new(&self.context, &live);
        // Boxed here, because a run's future is large and would otherwise be moved several times.
        let driven = Box::pin(step_site::drive(started));
        let task = async move {
            let result = driven.await;
            let run = registration.run();
            if let Err(error) = &result {
                tracing::warn!(session = %run.session, %error, "the run stopped");
            }
            run.finish(result);
        };
        drop(self.context.tasks.spawn(task));
        Ok(Some(live))
    }

    /// Always returns `None`: runs of other processes are visible only through their leases.
    async fn stopped(&self, _run_ref: &RunRef) -> Option<Error> {
        None
    }
}
