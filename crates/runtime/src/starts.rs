//! Starts of calls that must not run twice, on their way from the calls to the log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::event::Event;
use helix_agents_core::id::CallId;
use tokio::sync::{Notify, oneshot};

/// Where the calls of a phase ask for their starts to be recorded. Cheap to clone.
///
/// A call asks when it is about to run, not while it waits in a queue, and runs once the process that owns the run
/// has its start on record.
#[derive(Debug, Clone, Default)]
pub struct Starts(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    starts: Mutex<Vec<Start>>,
    any: Notify,
}

/// A call that is about to run, and waits for its start to be on record. If this is dropped, it does not run.
#[derive(Debug)]
pub struct Start {
    call: CallId,
    event: Event,
    granted: oneshot::Sender<()>,
}

impl Starts {
    /// Asks for a start to be recorded. Returns `true` if the call is to run.
    pub(crate) async fn recorded(&self, call: CallId, event: Event) -> bool {
        let (granted, is_granted) = oneshot::channel();
        self.lock().push(Start { call, event, granted });
        self.0.any.notify_one();
        is_granted.await.is_ok()
    }

    /// Waits until calls ask, and takes what they ask for.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn next(&self) -> Vec<Start> {
        loop {
            let asked = self.take();
            if !asked.is_empty() {
                return asked;
            }
            self.0.any.notified().await;
        }
    }

    /// Takes what calls ask for now.
    #[must_use]
    pub fn take(&self) -> Vec<Start> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Start>> {
        self.0.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Start {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// What is to be on record.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Lets the call run.
    pub fn grant(self) {
        // A call that was cancelled does not wait any more.
        let _ = self.granted.send(());
    }
}
