//! Notifications to live runs about requests that this process appended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::id::SessionId;
use tokio::sync::Notify;

#[cfg(test)]
mod tests;

/// Notifies the runs of this process to re-read their logs, each only when its own session has a new request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakeups(Arc<Mutex<Receivers>>);

/// The receivers of each session.
type Receivers = HashMap<SessionId, Vec<Arc<Notify>>>;

/// The receiving side of [`Wakeups`] for one run.
#[derive(Debug)]
pub(crate) struct WakeupReceiver {
    wakeups: Wakeups,
    session: SessionId,
    notify: Arc<Notify>,
}

impl Wakeups {
    /// Subscribes to the notifications of a session.
    pub(crate) fn subscribe(&self, session: &SessionId) -> WakeupReceiver {
        let notify = Arc::new(Notify::new());
        self.lock().entry(session.clone()).or_default().push(Arc::clone(&notify));
        WakeupReceiver { wakeups: self.clone(), session: session.clone(), notify }
    }

    /// Notifies the runs of a session that a request was appended.
    pub(crate) fn notify(&self, session: &SessionId) {
        self.lock().get(session).into_iter().flatten().for_each(|receiver| receiver.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, Receivers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WakeupReceiver {
    /// Waits until a request was appended to the session.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for WakeupReceiver {
    fn drop(&mut self) {
        let mut sessions = self.wakeups.lock();
        let Some(receivers) = sessions.get_mut(&self.session) else { return };
        receivers.retain(|other| !Arc::ptr_eq(other, &self.notify));
        if receivers.is_empty() {
            sessions.remove(&self.session);
        }
    }
}
