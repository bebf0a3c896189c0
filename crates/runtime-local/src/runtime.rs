//! The local runtime and its engine, which executes runs as tasks of this process.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, Result};
use helix_agents_runtime::{
    Engine, LiveRun, RunRef, RunRegistration, Runtime, RuntimeContext, StartedRun,
};

use crate::run_loop;

/// A runtime that executes runs as tasks of this process. Cheap to clone. Dropping it does not stop
/// its runs; [`shutdown`](helix_agents_core::executor::AgentExecutor::shutdown) does.
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
/// use helix_agents_core::executor::{AgentExecutor as _, AgentExecutorExt as _};
/// use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
/// use helix_agents_store_memory::MemoryStore;
/// use helix_agents_test::{Reply, ScriptedLlm};
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
pub type LocalRuntime = Runtime<LocalEngine>;

/// An engine that executes each run in a task of its own.
#[derive(Debug)]
pub struct LocalEngine {
    context: Arc<RuntimeContext>,
}

impl LocalEngine {
    pub(crate) fn new(context: Arc<RuntimeContext>) -> Self {
        Self { context }
    }
}

#[async_trait]
impl Engine for LocalEngine {
    fn kind(&self) -> &'static str {
        "local"
    }

    async fn start(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let live = Arc::clone(started.driver.live());
        // Ends all waits for the run even if the task is dropped or panics.
        let registration = RunRegistration::new(&self.context, &live);
        // Boxed here, because a run's future is large and would otherwise be moved several times.
        let driven = Box::pin(run_loop::drive(started));
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
    async fn stop_reason(&self, _run_ref: &RunRef) -> Option<Error> {
        None
    }
}
