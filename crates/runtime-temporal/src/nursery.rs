//! Runs of sub-agents that begin in a part of their parent: the parent's workflow starts theirs.
//!
//! The part tells of them with its answer. If that is lost, their parent waits until their leases have run out and goes on with
//! them then, as with any child whose owner died.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::id::SessionId;
use helix_agents_runtime::RunRef;

/// What began in parts that are under way in this process, by the session of the parent.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingChildren(Arc<Mutex<HashMap<SessionId, Vec<RunRef>>>>);

impl PendingChildren {
    /// Waits for what begins below a session, until the answer is dropped.
    pub(crate) fn open(&self, parent: &SessionId) -> Open {
        self.lock().insert(parent.clone(), Vec::new());
        Open { nursery: self.clone(), parent: parent.clone() }
    }

    /// Whether a part of the parent waits for runs that begin below it. This one is its to start then.
    pub(crate) fn takes(&self, parent: &SessionId, of: &RunRef) -> bool {
        match self.lock().get_mut(parent) {
            Some(begun) => {
                begun.push(of.clone());
                true
            }
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<RunRef>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part that waits for what begins below its session.
#[derive(Debug)]
pub(crate) struct Open {
    nursery: PendingChildren,
    parent: SessionId,
}

impl Open {
    /// What began meanwhile.
    pub(crate) fn close(self) -> Vec<RunRef> {
        self.nursery.lock().remove(&self.parent).unwrap_or_default()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.nursery.lock().remove(&self.parent);
    }
}
