//! The client of the Temporal server.

use std::fmt;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_runtime::RunRef;
use temporalio_client::errors::{
    WorkflowGetResultError, WorkflowInteractionError, WorkflowStartError,
};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowDescribeOptions,
    WorkflowExecutionStatus, WorkflowGetResultOptions, WorkflowHandle, WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy, WorkflowStartOptions, WorkflowTerminateOptions,
};
use temporalio_common::MemoValues;
use tokio::time::{Instant, sleep, timeout};

use crate::failure;
use crate::names;
use crate::payloads::{RunInput, RunLimits};
use crate::workflow::AgentRun;

/// The memo key for the run id of a workflow.
const RUN: &str = "run";

/// The delay between two connection attempts.
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(250);

/// The time for which a workflow may stay open after its run has ended. A session that is deleted and created again at once gets the
/// same workflow id.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The delay between two attempts to start a workflow whose id is in use.
const CLOSE_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A client of a Temporal namespace and task queue. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerClient {
    pub client: Client,
    pub queue: String,
    pub prefix: String,
    pub limits: RunLimits,
}

/// The status of a run's workflow on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkflowStatus {
    /// The workflow is open, on this task queue.
    Open { queue: String },
    /// The workflow is closed with this status.
    Closed(WorkflowExecutionStatus),
    /// The workflow does not exist, or its retention has ended.
    Absent,
}

impl fmt::Debug for ServerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, prefix, limits, .. } = self;
        let mut out = f.debug_struct("ServerClient");
        out.field("queue", queue).field("prefix", prefix).field("limits", limits);
        out.finish_non_exhaustive()
    }
}

/// Connects to the server, with TLS for `https` targets. Retries while the server is unavailable.
///
/// # Errors
/// Returns an error if the server does not become available in time or rejects the client.
pub(crate) async fn connect(
    to: &ConnectionOptions,
    options: &ClientOptions,
    connect_timeout: Duration,
) -> Result<Client> {
    let mut to = to.clone();
    if to.target.scheme() == "https" {
        // The client rejects an `https` target without TLS options.
        to.tls_options.get_or_insert_default();
    }
    let mut found = failure::unavailable("Temporal did not answer");
    let attempts = async {
        loop {
            match Connection::connect(to.clone()).await {
                Ok(connection) => return Some(connection),
                Err(error) => found = failure::not_connected(error),
            }
            if found.code() != ErrorCode::StoreUnavailable {
                return None;
            }
            tracing::debug!(error = %found, "Temporal is not available yet");
            sleep(CONNECT_RETRY_DELAY).await;
        }
    };
    let Ok(Some(connection)) = timeout(connect_timeout, attempts).await else {
        return Err(found.with_context("target", &to.target));
    };
    Client::new(connection, options.clone()).map_err(|error| {
        Error::new(ErrorCode::ConfigInvalid, "the options of the Temporal client are contradictory")
            .with_source(error)
    })
}

impl ServerClient {
    /// Starts the workflow of a run. Succeeds if the workflow has already been started. `recovered` states that an
    /// earlier workflow of the run, which the server no longer knows, may have executed part of it. A workflow of another
    /// run with this id gets a moment to close, because a session may be deleted and created again.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached, or if an open workflow with this id belongs to another store.
    pub(crate) async fn start(&self, run_ref: &RunRef, recovered: bool) -> Result<()> {
        let mut memo = MemoValues::new();
        memo.insert("agent", run_ref.agent.to_string());
        memo.insert("session", run_ref.session.to_string());
        memo.insert(RUN, run_ref.run.to_string());
        let input = RunInput {
            run_ref: run_ref.clone(),
            limits: self.limits,
            prefix: self.prefix.clone(),
            recovered,
            continued_from: None,
        };
        let options = WorkflowStartOptions::new(&*self.queue, self.id(run_ref))
            // A closed workflow with this id belongs to a run that has ended, for example of a deleted session or
            // store. Two runs of one session never have the same id.
            .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::Fail)
            .maybe_execution_timeout(self.limits.execution())
            .static_summary(names::summary(run_ref))
            .memo(memo)
            .build();
        let first_attempt = Instant::now();
        loop {
            let started = self.client.start_workflow(AgentRun::run, input.clone(), options.clone());
            match Box::pin(started).await {
                Ok(_) => return Ok(()),
                Err(WorkflowStartError::AlreadyStarted { .. }) => {
                    let checked = self.check_same_run(run_ref).await;
                    if checked.is_ok() || first_attempt.elapsed() >= CLOSE_TIMEOUT {
                        return checked;
                    }
                    sleep(CLOSE_RETRY_DELAY).await;
                }
                Err(error) => return Err(failure::not_started(error)),
            }
        }
    }

    /// Checks that the existing workflow of a run does not belong to another store.
    async fn check_same_run(&self, run_ref: &RunRef) -> Result<()> {
        let handle = self.handle(run_ref);
        let described = Box::pin(handle.describe(WorkflowDescribeOptions::default())).await;
        let found = described.map_err(failure::query_failed)?;
        match found.memo().get::<String>(RUN) {
            Ok(Some(run)) if run != run_ref.run.as_str() => Err(Error::new(
                ErrorCode::ConfigInvalid,
                "a workflow with this id executes a run of another store; give each deployment that shares a \
                 namespace its own `prefix`",
            )
            .with_context("workflow", self.id(run_ref))),
            // The workflow belongs to this run, or its parent started it.
            _ => Ok(()),
        }
    }

    /// Returns the status of a run's workflow.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached.
    pub(crate) async fn status(&self, run_ref: &RunRef) -> Result<WorkflowStatus> {
        let handle = self.handle(run_ref);
        match Box::pin(handle.describe(WorkflowDescribeOptions::default())).await {
            Ok(found) => Ok(match found.status() {
                WorkflowExecutionStatus::Running
                | WorkflowExecutionStatus::Paused
                | WorkflowExecutionStatus::ContinuedAsNew => {
                    WorkflowStatus::Open { queue: found.task_queue().to_owned() }
                }
                closed => WorkflowStatus::Closed(closed),
            }),
            Err(WorkflowInteractionError::NotFound(_)) => Ok(WorkflowStatus::Absent),
            Err(error) => Err(failure::query_failed(error)),
        }
    }

    /// Returns the failure of a run's workflow. Returns `None` if it did not fail or the server could not be queried.
    pub(crate) async fn failed_with(&self, run_ref: &RunRef) -> Option<Error> {
        let handle = self.handle(run_ref);
        let result = Box::pin(handle.get_result(WorkflowGetResultOptions::default())).await;
        match result {
            Err(WorkflowGetResultError::Failed(failure)) => {
                Some(failure::from_failed_workflow(&failure))
            }
            _ => None,
        }
    }

    /// Waits until the workflow of a run is closed or does not exist. Never resolves if the server cannot be queried.
    pub(crate) async fn ended(&self, run_ref: &RunRef) {
        let handle = self.handle(run_ref);
        let result = Box::pin(handle.get_result(WorkflowGetResultOptions::default())).await;
        if let Err(WorkflowGetResultError::Rpc(error)) = result {
            tracing::debug!(session = %run_ref.session, %error, "waiting for the end of a run failed");
            std::future::pending::<()>().await;
        }
    }

    /// Terminates the workflow of a superseded run, if it is still open.
    pub(crate) async fn end_superseded(&self, run_ref: &RunRef) {
        let options = WorkflowTerminateOptions::builder().reason("another run took over").build();
        let handle = self.handle(run_ref);
        match Box::pin(handle.terminate(options)).await {
            Ok(()) | Err(WorkflowInteractionError::NotFound(_)) => {}
            Err(error) => {
                // The workflow detects the takeover itself, with its next work item.
                tracing::debug!(session = %run_ref.session, %error, "a superseded workflow was not terminated");
            }
        }
    }

    fn handle(&self, run_ref: &RunRef) -> WorkflowHandle<Client, AgentRun> {
        self.client.get_workflow_handle(self.id(run_ref))
    }

    fn id(&self, run_ref: &RunRef) -> String {
        run_ref.workflow_id(&self.prefix)
    }
}
