//! The reasons for which a running effect is cancelled.

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::{RunId, SessionId};

/// The reason why an effect is cancelled before it completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// An abort of the run was requested.
    Aborted,
    /// Another run owns the session.
    Superseded,
    /// The session was deleted.
    SessionDeleted,
    /// The lease could not be renewed in time, so another process may take over at any moment.
    LeaseLost,
    /// The runtime is shutting down.
    ShuttingDown,
}

impl CancelReason {
    /// Converts the reason into the error that the driver returns. After an abort request the driver returns no error;
    /// the run ends as aborted.
    pub(crate) fn into_error(self, session: &SessionId, run: &RunId) -> Error {
        let (code, message) = match self {
            Self::Aborted => (ErrorCode::Cancelled, "the run was aborted"),
            Self::Superseded => (ErrorCode::Superseded, "another run owns the session now"),
            Self::SessionDeleted => {
                (ErrorCode::SessionNotFound, "the session was deleted while its run was active")
            }
            Self::LeaseLost => (
                ErrorCode::StoreUnavailable,
                "the lease could not be renewed in time; another process may take over",
            ),
            Self::ShuttingDown => (
                ErrorCode::Closed,
                "the runtime was shut down; the run can be resumed by another process",
            ),
        };
        Error::new(code, message).with_context("session", session).with_context("run", run)
    }
}
