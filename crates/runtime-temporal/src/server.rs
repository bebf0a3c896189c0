//! The Temporal server, as far as a runtime talks to it.

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
use tokio::time::{sleep, timeout};

use crate::failure;
use crate::names;
use crate::workflow::{AgentRun, RunInput, RunLimits};

/// The memo that tells which run a workflow is of.
const RUN: &str = "run";

/// Between two tries to connect.
const AGAIN: Duration = Duration::from_millis(250);

/// A server, a namespace of it, and a queue there. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Server {
    pub client: Client,
    pub queue: String,
    pub prefix: String,
    pub terms: RunLimits,
}

/// What the server knows of a run's workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkflowStatus {
    /// It is under way, on that queue.
    Open { queue: String },
    /// It is over.
    Closed(WorkflowExecutionStatus),
    /// There is none, or it was forgotten.
    Absent,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, prefix, terms, .. } = self;
        let mut out = f.debug_struct("Server");
        out.field("queue", queue).field("prefix", prefix).field("terms", terms);
        out.finish_non_exhaustive()
    }
}

/// Connects, by TLS where the target says `https`, and waits a while for a server that is not there yet.
///
/// # Errors
/// If it is not there in time, or refuses.
pub(crate) async fn connect(
    to: &ConnectionOptions,
    options: &ClientOptions,
    patience: Duration,
) -> Result<Client> {
    let mut to = to.clone();
    if to.target.scheme() == "https" {
        // The client refuses such a target without them.
        to.tls_options.get_or_insert_default();
    }
    let mut found = failure::unreachable("Temporal did not answer");
    let tries = async {
        loop {
            match Connection::connect(to.clone()).await {
                Ok(connection) => return Some(connection),
                Err(error) => found = failure::not_connected(error),
            }
            if found.code() != ErrorCode::StoreUnavailable {
                return None;
            }
            tracing::debug!(error = %found, "Temporal is not there yet");
            sleep(AGAIN).await;
        }
    };
    let Ok(Some(connection)) = timeout(patience, tries).await else {
        return Err(found.with_context("target", &to.target));
    };
    Client::new(connection, options.clone()).map_err(|error| {
        Error::new(ErrorCode::ConfigInvalid, "the client of Temporal has contradicting options")
            .with_source(error)
    })
}

impl Server {
    /// Starts the workflow of a run. That it was started before is no error.
    ///
    /// # Errors
    /// If the server cannot be reached, or another store has a run of this name under way.
    pub(crate) async fn start(&self, of: &RunRef, recovered: bool) -> Result<()> {
        let mut memo = MemoValues::new();
        memo.insert("agent", of.agent.to_string());
        memo.insert("session", of.session.to_string());
        memo.insert(RUN, of.run.to_string());
        let input = RunInput {
            of: of.clone(),
            terms: self.terms,
            prefix: self.prefix.clone(),
            recovered,
            left: None,
        };
        let options = WorkflowStartOptions::new(&*self.queue, self.id(of))
            // One that closed was of a run that ended, maybe in a store that is no more: runs of a session have different ids.
            .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::Fail)
            .maybe_execution_timeout(self.terms.execution())
            .static_summary(names::summary(of))
            .memo(memo)
            .build();
        match Box::pin(self.client.start_workflow(AgentRun::run, input, options)).await {
            Ok(_) => Ok(()),
            Err(WorkflowStartError::AlreadyStarted { .. }) => self.is_carried_out(of).await,
            Err(error) => Err(failure::not_started(error)),
        }
    }

    /// That the workflow of a run, which is there, is not one of another store's.
    async fn is_carried_out(&self, of: &RunRef) -> Result<()> {
        let handle = self.handle(of);
        let described = Box::pin(handle.describe(WorkflowDescribeOptions::default())).await;
        let found = described.map_err(failure::not_told)?;
        match found.memo().get::<String>(RUN) {
            Ok(Some(run)) if run != of.run.as_str() => Err(Error::new(
                ErrorCode::ConfigInvalid,
                "a workflow of this id carries out a run of another store; give deployments that share a \
                 namespace a `prefix` each",
            )
            .with_context("workflow", self.id(of))),
            // It is this run's, or one that its parent started.
            _ => Ok(()),
        }
    }

    /// How a run's workflow is.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub(crate) async fn standing(&self, of: &RunRef) -> Result<WorkflowStatus> {
        let handle = self.handle(of);
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
            Err(error) => Err(failure::not_told(error)),
        }
    }

    /// What the workflow of a run failed with. None if it did not fail, or nobody could say.
    pub(crate) async fn failed_with(&self, of: &RunRef) -> Option<Error> {
        let handle = self.handle(of);
        let result = Box::pin(handle.get_result(WorkflowGetResultOptions::default())).await;
        match result {
            Err(WorkflowGetResultError::Failed(failure)) => Some(failure::of_failed(&failure)),
            _ => None,
        }
    }

    /// Waits until the workflow of a run is over, or is found not to be there. If the server cannot tell, it never ends.
    pub(crate) async fn ended(&self, of: &RunRef) {
        let handle = self.handle(of);
        let result = Box::pin(handle.get_result(WorkflowGetResultOptions::default())).await;
        if let Err(WorkflowGetResultError::Rpc(error)) = result {
            tracing::debug!(session = %of.session, %error, "the server does not say when a run is over");
            std::future::pending::<()>().await;
        }
    }

    /// Ends the workflow of a run that another one took over from, if it is still there.
    pub(crate) async fn end_superseded(&self, of: &RunRef) {
        let options = WorkflowTerminateOptions::builder().reason("another run took over").build();
        let handle = self.handle(of);
        match Box::pin(handle.terminate(options)).await {
            Ok(()) | Err(WorkflowInteractionError::NotFound(_)) => {}
            Err(error) => {
                // It finds out by itself, with its next part.
                tracing::debug!(session = %of.session, %error, "a workflow was not ended");
            }
        }
    }

    fn handle(&self, of: &RunRef) -> WorkflowHandle<Client, AgentRun> {
        self.client.get_workflow_handle(self.id(of))
    }

    fn id(&self, of: &RunRef) -> String {
        of.workflow_id(&self.prefix)
    }
}
