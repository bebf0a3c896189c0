//! The Temporal runtime and its engine, which executes runs as workflows.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_runtime::{Engine, LiveRun, RunRef, Runtime, StartedRun};
use temporalio_client::WorkflowExecutionStatus;

use crate::pending_children::PendingChildren;
use crate::server_client::{ServerClient, WorkflowStatus};

/// A runtime that starts runs and has them executed by the [workers](crate::TemporalWorker) of its task queue, in this
/// process or other processes. Cheap to clone.
///
/// # Durability
/// Recorded events are as durable as the store. If a worker crashes, other workers continue its work after its
/// heartbeats time out. If a process crashes between starting a run and handing it to the server, a
/// [`sweep`](helix_agents_core::executor::AgentExecutor::sweep) recovers the run.
///
/// [`shutdown`](helix_agents_core::executor::AgentExecutor::shutdown) stops accepting runs. Runs are stopped by their
/// workers, so shut down the workers of this process first.
///
/// # Examples
/// ```no_run
/// use helix_agents_core::executor::AgentExecutorExt as _;
/// use helix_agents_runtime_temporal::{RuntimeBuilder as _, TemporalRuntime, TemporalWorker};
/// use helix_agents_store_postgres::PostgresStore;
///
/// # use helix_agents_core::{agent::Agent, agent::AgentRegistry, error::Result, llm::LlmAdapter};
/// # async fn example(agent: &Agent, agents: AgentRegistry, model: impl LlmAdapter) -> Result<()> {
/// let runtime = TemporalRuntime::builder()
///     .store(PostgresStore::open("postgres://localhost/agents").await?)
///     .llm(model)
///     .registry(agents)
///     .connect()
///     .await?;
/// let worker = TemporalWorker::builder(&runtime).start().await?;
/// println!("{}", runtime.run(agent, "Summarise the ticket.").await?);
/// worker.shutdown().await?;
/// # Ok(())
/// # }
/// ```
pub type TemporalRuntime = Runtime<TemporalEngine>;

/// An engine that executes each run as a Temporal workflow.
#[derive(Debug)]
pub struct TemporalEngine {
    pub(crate) server: ServerClient,
    pub(crate) pending_children: PendingChildren,
    /// `true` if only workers of this process poll the task queue.
    own_queue: bool,
}

impl TemporalEngine {
    pub(crate) fn new(server: ServerClient, own_queue: bool) -> Self {
        Self { server, pending_children: PendingChildren::default(), own_queue }
    }

    /// Replaces the API key of this runtime and of its workers in this process, without a restart. Call this before the
    /// old key expires. After the expiry, the server rejects new runs, which are recovered later, and a worker whose
    /// key is rejected for a while [ends](crate::TemporalWorker::ended).
    pub fn set_api_key(&self, key: impl Into<String>) {
        self.server.client.connection().set_api_key(Some(key.into()));
    }
}

#[async_trait]
impl Engine for TemporalEngine {
    fn kind(&self) -> &'static str {
        "temporal"
    }

    fn is_in_process(&self) -> bool {
        self.own_queue
    }

    async fn start(&self, mut started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let parent = started.driver.session().parent().map(|parent| parent.session.clone());
        let superseded = started.superseded.take();
        let run_ref = started.in_work_items();
        if parent.is_none_or(|parent| !self.pending_children.register(&parent, &run_ref)) {
            self.server.start(&run_ref, false).await.map_err(|error| about(error, &run_ref))?;
        }
        if let Some(superseded) = superseded {
            self.server.end_superseded(&superseded).await;
        }
        Ok(None)
    }

    async fn stop_reason(&self, run_ref: &RunRef) -> Option<Error> {
        let status = match self.server.status(run_ref).await {
            Ok(status) => status,
            Err(error) => {
                tracing::debug!(session = %run_ref.session, %error, "the status of the run's workflow is unknown");
                return None;
            }
        };
        let WorkflowStatus::Closed(status) = status else { return None };
        let (code, message) = match status {
            WorkflowExecutionStatus::Failed => return self.server.failed_with(run_ref).await,
            WorkflowExecutionStatus::Canceled => (
                ErrorCode::Cancelled,
                "the run's workflow was cancelled in Temporal; resume the session",
            ),
            WorkflowExecutionStatus::Terminated => (
                ErrorCode::Cancelled,
                "the run's workflow was terminated in Temporal; resume the session",
            ),
            WorkflowExecutionStatus::TimedOut => (
                ErrorCode::Closed,
                "Temporal ended the run's workflow because it exceeded its execution timeout; resume the session",
            ),
            // The outcome is in the log, or will be soon.
            _ => return None,
        };
        Some(about(Error::new(code, message), run_ref))
    }

    async fn until_stopped(&self, run_ref: &RunRef) {
        self.server.ended(run_ref).await;
    }

    async fn recovers(&self, run_ref: &RunRef) -> Result<bool> {
        Ok(match self.server.status(run_ref).await? {
            // A workflow on the queue of a crashed process has no worker.
            WorkflowStatus::Open { queue } => !self.own_queue || queue == self.server.queue,
            WorkflowStatus::Closed(_) => false,
            WorkflowStatus::Absent => {
                self.server.start(run_ref, true).await?;
                true
            }
        })
    }
}

fn about(error: Error, run_ref: &RunRef) -> Error {
    error.with_context("session", &run_ref.session).with_context("run", &run_ref.run)
}
