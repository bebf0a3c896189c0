//! The children of a session in the fold.

use std::sync::Arc;

use super::fold_state::CompanionRecord;
use super::history::HistorySink;
use super::{RunStatus, SessionOverview};
use crate::budget::BudgetUsage;
use crate::event::{ChildNotice, ChildStart, CompanionRef};
use crate::id::{CallId, RunId};

impl SessionOverview {
    /// Returns the children of calls that have no result, in call order.
    pub fn open_children(&self) -> impl Iterator<Item = &Arc<ChildStart>> {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        let open = calls.iter().filter(|call| call.finish.is_none());
        open.filter_map(|call| call.child.as_ref().map(|child| &child.start))
    }

    /// Returns the child of a call of the last step.
    pub(super) fn child_of(&self, call: &CallId) -> Option<&Arc<ChildStart>> {
        let step = self.open_step().or(self.closed_step())?;
        step.call(call)?.child.as_ref().map(|child| &child.start)
    }

    /// Returns the children that have to be aborted, and the reason of the abort, if the session's
    /// last run was aborted. These are the children of the last step's calls, and all companions.
    #[must_use]
    pub fn children_to_abort(&self) -> Option<(Vec<Arc<ChildStart>>, Option<String>)> {
        let run = self.last_run().filter(|run| run.status == RunStatus::Aborted)?;
        let calls = self.closed_step().map_or(&[][..], |step| &step.calls);
        let of_step = calls.iter().filter_map(|call| call.child.as_ref()).map(|child| &child.start);
        let stay = self.companions().map(|(_, record)| &record.start);
        Some((of_step.chain(stay).cloned().collect(), run.reason.clone()))
    }

    /// Returns the children whose ends the stream may still have to show when the session has no
    /// current run: the open ones, and those that an abort has to stop.
    #[must_use]
    pub fn children_to_show(&self) -> Vec<Arc<ChildStart>> {
        let to_abort = self.children_to_abort().map(|(children, _)| children);
        self.open_children().cloned().chain(to_abort.into_iter().flatten()).collect()
    }

    /// Returns the companions with their names.
    pub fn companions(&self) -> impl Iterator<Item = (&str, &CompanionRecord)> {
        self.fold_state.rare.companions.iter().map(|(name, record)| (name.as_str(), record))
    }

    /// Returns the companion with this name.
    #[must_use]
    pub fn companion(&self, name: &str) -> Option<&CompanionRecord> {
        self.fold_state.rare.companions.get(name)
    }

    /// Returns `true` if the session is a companion that runs concurrently with its parent and
    /// notifies it on completion.
    #[must_use]
    pub fn is_background(&self) -> bool {
        let stays = self.parent().and_then(|parent| parent.companion.as_ref());
        stays.is_some_and(CompanionRef::is_background)
    }

    /// Returns an unused name for a companion of that agent.
    #[must_use]
    pub fn free_name(&self, agent: &str) -> String {
        let names = (1_u32..).map(|number| format!("{agent}-{number}"));
        let mut free = names.filter(|name| !self.fold_state.rare.companions.contains_key(name));
        free.next().unwrap_or_default()
    }

    /// Returns the remaining allowances of all companions that no open call waits for.
    pub(super) fn companions_reserved(&self) -> BudgetUsage {
        let mut reserved = BudgetUsage::default();
        for record in self.fold_state.rare.companions.values() {
            let open = self.open_children().any(|child| child.session == record.start.session);
            if let Some(allowance) = record.start.allowance.as_ref().filter(|_| !open) {
                reserved += BudgetUsage::all_of(allowance).since(&record.spent);
            }
        }
        reserved
    }

    pub(super) fn keep_companion(&mut self, start: &Arc<ChildStart>) {
        let Some(companion) = &start.companion else { return };
        if !self.fold_state.rare.companions.contains_key(&companion.name) {
            let record =
                CompanionRecord { start: Arc::clone(start), spent: BudgetUsage::default() };
            Arc::make_mut(&mut self.fold_state.rare_mut().companions)
                .insert(companion.name.clone(), record);
        }
    }

    /// Records the total usage that a companion reports.
    pub(super) fn take_notice(
        &mut self,
        notice: &ChildNotice,
        run: Option<&RunId>,
        sink: &mut HistorySink<'_>,
    ) {
        let mut companions = self.fold_state.rare.companions.values();
        let Some(record) = companions.find(|record| record.start.session == notice.session) else {
            return;
        };
        let start = Arc::clone(&record.start);
        self.spend_child(&start, &notice.used, true, run, sink);
    }
}
