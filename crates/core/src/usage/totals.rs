//! The running totals of a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::entry::UsageKind;
use super::rollup::UsageRollup;
use crate::id::SessionId;

/// The usage of a session, added up as its log is read, so that no list has to be kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct UsageTotals {
    /// What it used itself.
    own: Arc<UsageRollup>,
    /// What children used that are called once.
    below: UsageRollup,
    /// What each child that stays said last: each time it tells all that it has used.
    staying: BTreeMap<SessionId, Arc<UsageRollup>>,
}

impl UsageTotals {
    /// Adds what was used. `stays` says whether the child that used it may be called again.
    pub(crate) fn add(&mut self, kind: &UsageKind, stays: bool) {
        let mut before = None;
        if let UsageKind::SubAgent { session, used, .. } = kind {
            if stays {
                before = self.staying.get(session).cloned();
                if before.as_ref().is_none_or(|before| !used.is_before(before)) {
                    self.staying.insert(session.clone(), Arc::clone(used));
                }
            } else {
                self.below += used;
            }
        }
        Arc::make_mut(&mut self.own).add(kind, before.as_deref());
    }

    /// What the session used up itself, without its children.
    pub(crate) fn own(&self) -> &Arc<UsageRollup> {
        &self.own
    }

    /// What the session and its children used up.
    pub(crate) fn tree(&self) -> UsageRollup {
        let mut below = self.below.clone();
        self.staying.values().for_each(|used| below += used);
        let mut rollup = UsageRollup::clone(&self.own);
        rollup += &below;
        rollup
    }
}
