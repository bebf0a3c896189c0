//! The initiator of a run.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::RequestId;
use helix_agents_core::session::{RunRecord, RunStatus, Session};

/// The initiator of a run. It determines which interrupt the run clears (`clears`) and which sessions may be resumed
/// (`check`).
#[derive(Debug, Clone)]
pub(crate) enum StartedBy {
    /// An explicit `execute` or `resume`. It clears a pending interrupt.
    Caller,
    /// The run of the session's parent, with the interrupt that was cleared for the parent.
    Parent { cleared: Option<RequestId> },
    /// An answer to a call that the session waits for.
    Answer,
    /// A sweep. It does not resume a session that has failed or was interrupted after the sweep found it.
    Sweep,
}

impl StartedBy {
    pub(super) fn clears(&self, fold: &Session) -> Option<RequestId> {
        match self {
            Self::Caller => fold.interrupt_request().map(|request| request.id.clone()),
            Self::Parent { cleared } => cleared.clone(),
            Self::Answer | Self::Sweep => None,
        }
    }

    pub(super) fn check(&self, fold: &Session) -> Result<()> {
        let unfinished =
            |run: &RunRecord| run.status == RunStatus::Running || run.status.is_suspended();
        if !matches!(self, Self::Sweep) || fold.last_run().is_some_and(unfinished) {
            return Ok(());
        }
        let message = format!("the session is {}: a sweep does not resume it", fold.status());
        Err(Error::new(ErrorCode::NothingToResume, message).with_context("session", fold.id()))
    }
}
