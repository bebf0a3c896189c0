//! Why workflows stop: in DBOS's words, in its tables, and for those who wait for a run.

use dbos::sysdb;
use helix_agents_core::error::{Error, ErrorCode, ErrorRecord};
use serde::{Deserialize, Serialize};

/// What DBOS says when a workflow or a step of it stops.
pub(crate) type Stopped = dbos::Error<Failure>;

/// An error of a run, as it stands in DBOS's tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(transparent)]
#[error("{0}")]
pub(crate) struct Failure(ErrorRecord);

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: &str) -> Self {
        Self(ErrorRecord::new(code, message))
    }

    /// Whether the same step, tried again, may get further.
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

/// What it means for those who wait for the run.
pub(crate) fn to_error(stopped: &Stopped) -> Error {
    if is_cancelled(stopped) {
        return cancelled();
    }
    if is_elsewhere(stopped) {
        let message = "another process goes on with the run; ask for a handle on it anew";
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

/// A workflow that somebody cancelled in DBOS.
pub(crate) fn cancelled() -> Error {
    Error::new(
        ErrorCode::Cancelled,
        "the run's workflow was cancelled in DBOS; the run can be resumed, and sweeps do so",
    )
}

/// A workflow that DBOS has begun too often.
pub(crate) fn parked() -> Error {
    Error::new(
        ErrorCode::Internal,
        "the run's workflow was begun again and again without an end, and DBOS gave it up; see the \
         logs of its processes, and resume the run",
    )
}

/// What DBOS's own error means for whoever asked for something.
pub(crate) fn of_dbos(what: &'static str, error: &dbos::Error) -> Error {
    let code = match error {
        dbos::Error::Config(_) | dbos::Error::InvalidArgument { .. } => ErrorCode::ConfigInvalid,
        dbos::Error::SystemDatabase(sysdb::Error::Backend(_)) => ErrorCode::StoreUnavailable,
        dbos::Error::NotLaunched { .. } | dbos::Error::Interrupted { .. } => ErrorCode::Closed,
        _ => ErrorCode::Internal,
    };
    Error::new(code, format!("DBOS could not {what}: {error}"))
}

/// Whether the workflow was cancelled in DBOS, by this runtime or by hand.
fn is_cancelled(stopped: &Stopped) -> bool {
    matches!(
        stopped,
        Stopped::WorkflowCancelled { .. }
            | Stopped::SystemDatabase(sysdb::Error::WorkflowCancelled { .. })
    )
}

/// Whether another execution of the same workflow goes on with the run.
pub(crate) fn is_elsewhere(stopped: &Stopped) -> bool {
    matches!(stopped, Stopped::SystemDatabase(sysdb::Error::StepAlreadyRecorded { .. }))
}
