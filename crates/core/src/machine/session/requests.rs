//! Requests to stop a run, as the log contains them.

use super::SessionOverview;
use super::fold_state::StopRequest;
use crate::id::RequestId;

/// The kind of a stop request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// Stop at the next step boundary.
    Interrupt,
    /// Stop immediately.
    Abort,
}

impl SessionOverview {
    /// Returns the request of this kind that no run has handled yet.
    #[must_use]
    pub fn request(&self, kind: StopKind) -> Option<&StopRequest> {
        match kind {
            StopKind::Interrupt => self.interrupt_request(),
            StopKind::Abort => self.abort_request(),
        }
    }

    /// Returns `true` if the session has received this request before, or the request was cleared.
    #[must_use]
    pub fn knows_request(&self, id: &RequestId) -> bool {
        self.fold_state.rare.requests.contains(id)
    }

    /// Returns the last interrupt that an explicit resume cleared. Children that it was passed down
    /// to are resumed with the session.
    #[must_use]
    pub fn cleared_interrupt(&self) -> Option<&RequestId> {
        self.fold_state.rare.cleared.as_ref()
    }

    /// Returns the last interrupt that ended a run.
    #[must_use]
    pub fn handled_interrupt(&self) -> Option<&RequestId> {
        self.fold_state.rare.honoured.as_ref()
    }
}
