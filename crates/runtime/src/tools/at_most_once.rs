//! Records the start of an at-most-once call before the call runs.

use helix_agents_core::event::Event;
use helix_agents_core::mutant;

use super::{CallRun, millis};
use crate::lease_view::LeaseMargin;

impl CallRun {
    /// Waits until this process owns the run and, for an at-most-once call, until the start is recorded.
    /// Returns `true` if the call may run.
    pub(super) async fn may_start(&self) -> bool {
        if !self.task.at_most_once || mutant!("start-not-recorded") {
            return self.is_owned(LeaseMargin::Third).await;
        }
        let mut attempt = self.task.attempt;
        loop {
            let requested = self.clock.monotonic();
            if !self.is_start_recorded(attempt).await || !self.is_owned(LeaseMargin::Half).await {
                return false;
            }
            if self.clock.monotonic().saturating_sub(requested) <= self.start_window {
                return true;
            }
            // Another worker may have started the next attempt. Only one of the two starts is recorded.
            attempt += 1;
        }
    }

    /// Waits until the start of this attempt is recorded. Returns `false` if the attempt must not run.
    async fn is_start_recorded(&self, attempt: u32) -> bool {
        let call = self.task.call.clone();
        let timeout_ms = Some(millis(self.timeout));
        let start = Event::ToolStarted { call: call.clone(), attempt, timeout_ms };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            is_recorded = self.starts.recorded(call, start) => is_recorded,
        }
    }
}
