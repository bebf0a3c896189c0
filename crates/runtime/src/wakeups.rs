//! Notifications to live runs about requests that this process appended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::id::SessionId;
use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// Notifies the runs of this process to re-read their logs, each only when its own session has a new request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakeups(Arc<Mutex<HashMap<SessionId, watch::Sender<()>>>>);

/// The receiving side of [`Wakeups`] for one run.
#[derive(Debug)]
pub(crate) struct WakeupReceiver {
    wakeups: Wakeups,
    session: SessionId,
    receiver: watch::Receiver<()>,
}

impl Wakeups {
    /// Subscribes to the notifications of a session.
    pub(crate) fn subscribe(&self, session: &SessionId) -> WakeupReceiver {
        let receiver = self.lock().entry(session.clone()).or_default().subscribe();
        WakeupReceiver { wakeups: self.clone(), session: session.clone(), receiver }
    }

    /// Notifies the runs of a session that a request was appended.
    pub(crate) fn notify(&self, session: &SessionId) {
        if let Some(sender) = self.lock().get(session) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WakeupReceiver {
    /// Waits until a request was appended to the session.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub(crate) async fn notified(&mut self) {
        // The sender stays in the map for as long as this receiver exists.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for WakeupReceiver {
    fn drop(&mut self) {
        let mut sessions = self.wakeups.lock();
        // This is the last receiver.
        if sessions.get(&self.session).is_some_and(|sender| sender.receiver_count() <= 1) {
            sessions.remove(&self.session);
        }
    }
}
