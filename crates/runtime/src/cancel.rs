//! Why an effect is broken off.

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::{RunId, SessionId};

/// Why an effect is broken off before it has ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// Somebody asked the run to stop at once.
    Aborted,
    /// Another run owns the session.
    Superseded,
    /// The lease could not be renewed for so long that another process may take over any moment.
    LeaseLost,
    /// The runtime is shutting down.
    ShuttingDown,
}

impl CancelReason {
    /// The error with which the driver ends. An abort is not one: the run ends as aborted.
    pub(crate) fn into_error(self, session: &SessionId, run: &RunId) -> Error {
        let (code, message) = match self {
            Self::Aborted => (ErrorCode::Cancelled, "the run was aborted"),
            Self::Superseded => (ErrorCode::Superseded, "another run owns the session now"),
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
