//! The runtime, and its engine: workflows on a server.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_runtime::{
    Engine, LiveRun, RunRef, Runtime, RuntimeContext, StartedRun, forward_executor,
};
use temporalio_client::WorkflowExecutionStatus;

use crate::builder::TemporalRuntimeBuilder;
use crate::nursery::PendingChildren;
use crate::server::{Server, WorkflowStatus};

/// Begins runs, and has them carried out by the [workers](crate::TemporalWorker) of its queue, in this process or others. Cheap
/// to clone.
///
/// # Durability
/// What is recorded survives what the store survives. A worker that dies leaves what it was doing to others, once its
/// heartbeats are missed; a process that dies between beginning a run and telling the server of it leaves it to a
/// [`sweep`](helix_agents_core::executor::AgentExecutor::sweep).
#[derive(Debug, Clone)]
pub struct TemporalRuntime {
    runtime: Runtime,
    server: Server,
    nursery: PendingChildren,
}

impl TemporalRuntime {
    /// Begins to put a runtime together.
    pub fn builder() -> TemporalRuntimeBuilder {
        TemporalRuntimeBuilder::default()
    }

    pub(crate) fn new(context: Arc<RuntimeContext>, server: Server, own_queue: bool) -> Self {
        let nursery = PendingChildren::default();
        let engine = Workflows { server: server.clone(), nursery: nursery.clone(), own_queue };
        Self { runtime: Runtime::new(context, Arc::new(engine)), server, nursery }
    }

    pub(crate) fn inner(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn nursery(&self) -> &PendingChildren {
        &self.nursery
    }

    /// From now on this API key is shown to the server, by this runtime and its workers in this process: how a key is changed
    /// without stopping anything. It has to be called before the old one ceases to count: a run that is begun in between is
    /// refused, though not lost, and a worker whose key is refused for a while [ends](crate::TemporalWorker::ended).
    pub fn set_api_key(&self, key: impl Into<String>) {
        self.server.client.connection().set_api_key(Some(key.into()));
    }

    /// Stops taking runs. Those under way are their workers' to end: shut workers of this process down first.
    pub async fn shutdown(&self) {
        let context = self.runtime.context();
        context.tasks.end(context.grace).await;
    }
}

forward_executor!(TemporalRuntime);

/// Has each run carried out by a workflow.
#[derive(Debug)]
struct Workflows {
    server: Server,
    nursery: PendingChildren,
    /// Whether nobody else carries out what is on the queue.
    own_queue: bool,
}

#[async_trait]
impl Engine for Workflows {
    fn kind(&self) -> &'static str {
        "temporal"
    }

    fn is_in_process(&self) -> bool {
        self.own_queue
    }

    async fn drive(&self, mut begun: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let parent = begun.driver.session().parent().map(|parent| parent.session.clone());
        let over = begun.over.take();
        let of = begun.in_parts();
        if parent.is_none_or(|parent| !self.nursery.takes(&parent, &of)) {
            self.server.start(&of, false).await.map_err(|error| about(error, &of))?;
        }
        if let Some(over) = over {
            self.server.end_superseded(&over).await;
        }
        Ok(None)
    }

    async fn stopped(&self, of: &RunRef) -> Option<Error> {
        let standing = match self.server.standing(of).await {
            Ok(standing) => standing,
            Err(error) => {
                tracing::debug!(session = %of.session, %error, "nobody knows how the run is");
                return None;
            }
        };
        let WorkflowStatus::Closed(status) = standing else { return None };
        let (code, message) = match status {
            WorkflowExecutionStatus::Failed => return self.server.failed_with(of).await,
            WorkflowExecutionStatus::Canceled => {
                (ErrorCode::Cancelled, "the run's workflow was cancelled in Temporal; resume it")
            }
            WorkflowExecutionStatus::Terminated => {
                (ErrorCode::Cancelled, "the run's workflow was terminated in Temporal; resume it")
            }
            WorkflowExecutionStatus::TimedOut => {
                (ErrorCode::Closed, "the run's workflow took longer than it may; resume it")
            }
            // What it came to is in the log, or will be.
            _ => return None,
        };
        Some(about(Error::new(code, message), of))
    }

    async fn ended(&self, of: &RunRef) {
        self.server.ended(of).await;
    }

    async fn goes_on(&self, of: &RunRef) -> Result<bool> {
        Ok(match self.server.standing(of).await? {
            // What is on a queue that died with its process is carried out by nobody.
            WorkflowStatus::Open { queue } => !self.own_queue || queue == self.server.queue,
            WorkflowStatus::Closed(_) => false,
            WorkflowStatus::Absent => {
                self.server.start(of, true).await?;
                true
            }
        })
    }
}

fn about(error: Error, of: &RunRef) -> Error {
    error.with_context("session", &of.session).with_context("run", &of.run)
}
