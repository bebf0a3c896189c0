//! Child runs that are started by a work item of their parent. The parent's workflow then starts their workflows.
//!
//! The activity returns these runs with its result. If the result is lost, the parent waits until their leases have
//! expired and then resumes them, like any child whose owner crashed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helix_agents_core::id::SessionId;
use helix_agents_runtime::RunRef;

/// The child runs started by running work items of this process, by parent session.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingChildren(Arc<Mutex<HashMap<SessionId, Vec<RunRef>>>>);

impl PendingChildren {
    /// Collects the runs that are started below a session until the returned collector is dropped.
    pub(crate) fn collect(&self, parent: &SessionId) -> ChildCollector {
        self.lock().insert(parent.clone(), Vec::new());
        ChildCollector { pending_children: self.clone(), parent: parent.clone() }
    }

    /// Registers a run with the collector of its parent. Returns `true` if there is one; the parent then starts the
    /// workflow.
    pub(crate) fn register(&self, parent: &SessionId, run_ref: &RunRef) -> bool {
        match self.lock().get_mut(parent) {
            Some(children) => {
                children.push(run_ref.clone());
                true
            }
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<RunRef>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A collector of the child runs that a work item starts.
#[derive(Debug)]
pub(crate) struct ChildCollector {
    pending_children: PendingChildren,
    parent: SessionId,
}

impl ChildCollector {
    /// Returns the collected runs.
    pub(crate) fn finish(self) -> Vec<RunRef> {
        self.pending_children.lock().remove(&self.parent).unwrap_or_default()
    }
}

impl Drop for ChildCollector {
    fn drop(&mut self) {
        self.pending_children.lock().remove(&self.parent);
    }
}
