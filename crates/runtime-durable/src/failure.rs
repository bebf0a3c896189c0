//! Conversions of workflow errors: for DBOS, for its tables, and for callers that wait for a run.

use dbos::sysdb;
use helix_agents_core::error::{Error, ErrorCode, ErrorRecord};
use serde::{Deserialize, Serialize};

/// The DBOS error of a stopped workflow or step.
pub(crate) type Stopped = dbos::Error<Failure>;

/// An error of a run as it is stored in DBOS's tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(transparent)]
#[error("{0}")]
pub(crate) struct Failure(ErrorRecord);

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: &str) -> Self {
        Self(ErrorRecord::new(code, message))
    }

    /// Returns `true` if a retry of the same step may succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }

    fn to_error(&self) -> Error {
        self.0.to_error(ErrorCode::Internal)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self(error.record().without_detail())
    }
}

/// Converts a workflow error into the error for callers that wait for the run.
pub(crate) fn to_error(stopped: &Stopped) -> Error {
    if is_cancelled(stopped) {
        return cancelled();
    }
    if is_executed_elsewhere(stopped) {
        let message = "another process continues the run; request a new handle";
        return Error::new(ErrorCode::Superseded, message);
    }
    match stopped {
        Stopped::Application(failure) => failure.to_error(),
        Stopped::MaxStepRetriesExceeded { errors, .. } if let Some(last) = errors.last() => {
            to_error(last)
        }
        Stopped::Interrupted { .. } => Error::new(
            ErrorCode::Closed,
            "the runtime was shut down; the run can be resumed by another process",
        ),
        Stopped::SystemDatabase(error) => {
            Error::new(ErrorCode::StoreUnavailable, format!("DBOS cannot record the run: {error}"))
        }
        other => Error::new(ErrorCode::Internal, format!("the run's workflow stopped: {other}")),
    }
}

/// Returns the error of a workflow that was cancelled in DBOS.
pub(crate) fn cancelled() -> Error {
    Error::new(
        ErrorCode::Cancelled,
        "the run's workflow was cancelled in DBOS; the run can be resumed, and sweeps do so",
    )
}

/// Returns the error of a workflow that exceeded DBOS's recovery attempts.
pub(crate) fn too_many_recoveries() -> Error {
    Error::new(
        ErrorCode::Internal,
        "the run's workflow was recovered too often without completing, and DBOS stopped it; see the \
         logs of its processes, and resume the run",
    )
}

/// Converts an error of a DBOS operation.
pub(crate) fn from_dbos(what: &'static str, error: &dbos::Error) -> Error {
    let code = match error {
        dbos::Error::Config(_) | dbos::Error::InvalidArgument { .. } => ErrorCode::ConfigInvalid,
        dbos::Error::SystemDatabase(sysdb::Error::Backend(_)) => ErrorCode::StoreUnavailable,
        dbos::Error::NotLaunched { .. } | dbos::Error::Interrupted { .. } => ErrorCode::Closed,
        _ => ErrorCode::Internal,
    };
    Error::new(code, format!("DBOS could not {what}: {error}"))
}

/// Returns `true` if the workflow was cancelled in DBOS, by this runtime or manually.
fn is_cancelled(stopped: &Stopped) -> bool {
    matches!(
        stopped,
        Stopped::WorkflowCancelled { .. }
            | Stopped::SystemDatabase(sysdb::Error::WorkflowCancelled { .. })
    )
}

/// Returns `true` if another execution of the same workflow continues the run.
pub(crate) fn is_executed_elsewhere(stopped: &Stopped) -> bool {
    matches!(stopped, Stopped::SystemDatabase(sysdb::Error::StepAlreadyRecorded { .. }))
}
