//! The runtime, and its engine: tasks of this process.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, Result};
use helix_agents_runtime::{
    Engine, LiveRun, RunRef, RunRegistration, Runtime, RuntimeContext, StartedRun, forward_executor,
};

use crate::builder::LocalRuntimeBuilder;
use crate::step_site;

/// Carries out runs as tasks of this process. Cheap to clone.
///
/// # Durability
/// What is recorded survives what the store survives. A process that is killed leaves its runs to
/// whoever resumes them once their lease has run out: this runtime's
/// [`recover`](helix_agents_core::executor::AgentExecutor::recover), or a `resume` from any process.
#[derive(Debug, Clone)]
pub struct LocalRuntime {
    runtime: Runtime,
}

impl LocalRuntime {
    /// Begins to put a runtime together.
    pub fn builder() -> LocalRuntimeBuilder {
        LocalRuntimeBuilder::default()
    }

    pub(crate) fn new(context: Arc<RuntimeContext>) -> Self {
        let engine = Tasks { context: Arc::clone(&context) };
        Self { runtime: Runtime::new(context, Arc::new(engine)) }
    }

    /// Stops taking runs and ends those under way: they stop before their next effect, and after
    /// the grace period in the middle of it. They do not end in the log: another process goes on
    /// with them at once, for their leases are given up.
    pub async fn shutdown(&self) {
        let context = self.runtime.context();
        context.tasks.end(context.grace).await;
    }
}

forward_executor!(LocalRuntime);

/// Carries runs out as tasks, each on one of its own.
#[derive(Debug)]
struct Tasks {
    context: Arc<RuntimeContext>,
}

#[async_trait]
impl Engine for Tasks {
    fn kind(&self) -> &'static str {
        "local"
    }

    async fn drive(&self, begun: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let live = Arc::clone(begun.driver.live());
        // Whatever becomes of the task, nobody waits for it forever.
        let listed = RunRegistration::new(&self.context, &live);
        // Boxed before it is handed on: a run is large, and a task of it moves about.
        let driven = Box::pin(step_site::drive(begun));
        let task = async move {
            let result = driven.await;
            let run = listed.run();
            if let Err(error) = &result {
                tracing::warn!(session = %run.session, %error, "the run stopped");
            }
            run.finish(result);
        };
        drop(self.context.tasks.spawn(task));
        Ok(Some(live))
    }

    /// Runs of other processes can only be told by their leases.
    async fn stopped(&self, _of: &RunRef) -> Option<Error> {
        None
    }
}
