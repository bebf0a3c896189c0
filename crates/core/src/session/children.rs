//! What the fold knows of children.

use std::sync::Arc;

use super::Session;
use super::ledger::CompanionRecord;
use crate::event::{ChildStart, ChildUsage};
use crate::id::{CallId, SessionId};

impl Session {
    /// The children of calls that have no result, in call order.
    pub fn open_children(&self) -> impl Iterator<Item = &Arc<ChildStart>> {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        let open = calls.iter().filter(|call| call.finish.is_none());
        open.filter_map(|call| call.child.as_ref().map(|child| &child.start))
    }

    /// The child of a call of the last step.
    pub(super) fn child_of(&self, call: &CallId) -> Option<&Arc<ChildStart>> {
        let step = self.open_step().or(self.closed_step())?;
        step.call(call)?.child.as_ref().map(|child| &child.start)
    }

    /// The children that stay, by name.
    pub fn companions(&self) -> impl Iterator<Item = (&str, &CompanionRecord)> {
        self.ledger.companions.iter().map(|(name, record)| (name.as_str(), record))
    }

    /// The child that stays under this name.
    #[must_use]
    pub fn companion(&self, name: &str) -> Option<&CompanionRecord> {
        self.ledger.companions.get(name)
    }

    /// Whether it is a child that works beside its parent.
    #[must_use]
    pub fn stays(&self) -> bool {
        self.parent().is_some_and(|parent| parent.notify)
    }

    /// A name for another companion of that agent.
    #[must_use]
    pub fn free_name(&self, agent: &str) -> String {
        let names = (1_u32..).map(|number| format!("{agent}-{number}"));
        let mut free = names.filter(|name| !self.ledger.companions.contains_key(name));
        free.next().unwrap_or_default()
    }

    pub(super) fn keep_companion(&mut self, start: &Arc<ChildStart>) {
        let Some(companion) = &start.companion else { return };
        if !self.ledger.companions.contains_key(&companion.name) {
            let record =
                CompanionRecord { start: Arc::clone(start), counted: ChildUsage::default() };
            Arc::make_mut(&mut self.ledger.companions).insert(companion.name.clone(), record);
        }
    }

    /// Counts what a child has used up, all in all: of one that stays, what was not counted before.
    pub(super) fn count_child(&mut self, child: Option<&SessionId>, used: ChildUsage) {
        let companions = &self.ledger.companions;
        let stays = companions.iter().find(|(_, it)| Some(&it.start.session) == child);
        let Some(name) = stays.map(|(name, _)| name.clone()) else {
            self.ledger.children += used;
            return;
        };
        if let Some(record) = Arc::make_mut(&mut self.ledger.companions).get_mut(&name) {
            self.ledger.children += used.since(record.counted);
            record.counted = used;
        }
    }
}
