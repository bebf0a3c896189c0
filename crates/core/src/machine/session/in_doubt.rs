//! Calls of which it is unknown whether a process still executes them.

use std::sync::Arc;
use std::time::Duration;

use super::SessionOverview;
use crate::clock::Timestamp;

impl SessionOverview {
    /// Returns the calls in doubt: unfinished calls of at-most-once tools whose start is recorded. Each is the tool's
    /// name and the time for which the previous owner, if it is slow but alive, may still execute the call. A resume
    /// waits for that time before it continues. `now` is the time by the store's clock.
    #[must_use]
    pub fn calls_in_doubt(&self, now: Timestamp) -> Vec<(Arc<str>, Duration)> {
        let calls = self.open_step().into_iter().flat_map(|step| step.pairs());
        let open = calls.filter(|(_, state)| state.finish.is_none());
        let started = open.filter_map(|(call, state)| {
            let started = state.started.as_ref()?;
            let limit = Duration::from_millis(started.timeout_ms?);
            let left = limit.saturating_sub(now.since(started.at?));
            (!left.is_zero()).then(|| (Arc::clone(&call.name), left))
        });
        started.collect()
    }
}
