//! The running usage totals of a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::entry::UsageKind;
use super::rollup::UsageRollup;
use crate::id::SessionId;

/// The usage of a session, aggregated while its log is read, so that no list of entries is kept.
/// Cheap to clone: its maps are shared until they change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct UsageTotals {
    /// The usage of the session itself.
    own: UsageRollup,
    /// The usage of sub-agents that end with their call.
    below: Arc<UsageRollup>,
    /// The last report of each companion. Each report contains the companion's whole usage.
    staying: Arc<BTreeMap<SessionId, Arc<UsageRollup>>>,
}

impl UsageTotals {
    /// Adds a usage entry. `stays` is `true` if the child that caused it is a companion.
    pub(crate) fn add(&mut self, kind: &UsageKind, stays: bool) {
        let mut before = None;
        if let UsageKind::SubAgent { session, used, .. } = kind {
            if stays {
                before = self.staying.get(session).cloned();
                if before.as_ref().is_none_or(|before| !used.is_before(before)) {
                    let staying = Arc::make_mut(&mut self.staying);
                    staying.insert(session.clone(), Arc::clone(used));
                }
            } else {
                *Arc::make_mut(&mut self.below) += used;
            }
        }
        self.own.add(kind, before.as_deref());
    }

    /// Returns the usage of the session itself, without its children.
    pub(crate) fn own(&self) -> &UsageRollup {
        &self.own
    }

    /// Returns the usage of the session and its children.
    pub(crate) fn tree(&self) -> UsageRollup {
        let mut below = UsageRollup::clone(&self.below);
        self.staying.values().for_each(|used| below += used);
        let mut rollup = self.own.clone();
        rollup += &below;
        rollup
    }
}
