//! A queue of at-most-once calls that are ready to run. The owner of the run records each start and then lets the call
//! run (see `tools/at_most_once.rs`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::event::Event;
use helix_agents_core::id::CallId;
use tokio::sync::{Notify, oneshot};

/// A queue in which concurrent at-most-once calls request the recording of their starts. Cheap to clone.
///
/// A call requests this when it is about to run, not while it waits for the concurrency limit. It runs once the
/// owner of the run has recorded its start.
#[derive(Debug, Clone, Default)]
pub struct StartQueue(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    starts: Mutex<Vec<StartTicket>>,
    any: Notify,
}

/// A call that waits until its start is recorded. If this value is dropped, the call does not run.
#[derive(Debug)]
pub struct StartTicket {
    call: CallId,
    event: Event,
    granted: oneshot::Sender<()>,
}

impl StartQueue {
    /// Requests the recording of a start. Returns `true` if the call may run.
    pub(crate) async fn recorded(&self, call: CallId, event: Event) -> bool {
        let (granted, is_granted) = oneshot::channel();
        self.lock().push(StartTicket { call, event, granted });
        self.0.any.notify_one();
        is_granted.await.is_ok()
    }

    /// Waits until calls request the recording of their starts, and takes these requests.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn next(&self) -> Vec<StartTicket> {
        loop {
            let starts = self.take();
            if !starts.is_empty() {
                return starts;
            }
            self.0.any.notified().await;
        }
    }

    /// Takes the requests that are queued now.
    #[must_use]
    pub fn take(&self) -> Vec<StartTicket> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StartTicket>> {
        self.0.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartTicket {
    /// Returns the id of the call.
    #[must_use]
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// Returns the event to record.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Allows the call to run.
    pub fn grant(self) {
        // A cancelled call no longer waits.
        let _ = self.granted.send(());
    }
}
