//! Requests that this process appended, on their way to its own runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::id::SessionId;
use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// Lets runs of this process look into their logs: each only when something was appended to its own session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakeups(Arc<Mutex<HashMap<SessionId, watch::Sender<()>>>>);

/// A run's end of [`Wakeups`].
#[derive(Debug)]
pub(crate) struct Nudged {
    wakeups: Wakeups,
    session: SessionId,
    receiver: watch::Receiver<()>,
}

impl Wakeups {
    /// What tells a run of this session.
    pub(crate) fn of(&self, session: &SessionId) -> Nudged {
        let receiver = self.lock().entry(session.clone()).or_default().subscribe();
        Nudged { wakeups: self.clone(), session: session.clone(), receiver }
    }

    /// Lets the runs of a session look for requests: one was appended.
    pub(crate) fn tell(&self, session: &SessionId) {
        if let Some(sender) = self.lock().get(session) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nudged {
    /// Waits until something was appended to the session.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub(crate) async fn told(&mut self) {
        // The sender stays in the map as long as this does.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for Nudged {
    fn drop(&mut self) {
        let mut sessions = self.wakeups.lock();
        // The last one, which is this.
        if sessions.get(&self.session).is_some_and(|sender| sender.receiver_count() <= 1) {
            sessions.remove(&self.session);
        }
    }
}
