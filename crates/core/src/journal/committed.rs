//! The result of a commit.

use std::sync::Arc;

use crate::event::{Event, ToolFinish};
use crate::store::StoredAppend;

/// The events that a commit recorded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Committed {
    /// The recorded events, in order. Empty if the events are held back until the step is closed,
    /// if the log already contained all of them, or if a conflict dropped decisions that the next
    /// [`stage`](super::Journal::stage) makes again.
    pub events: Vec<Event>,
    /// The version of the log after the recorded events.
    pub version: u64,
    /// The events of other writers between the recorded ones: how many recorded events precede
    /// them, and how many they are.
    others: Vec<(usize, u64)>,
    /// Events that another worker of the same run has recorded since the last commit, with their
    /// versions.
    pub(super) by_others: Vec<(u64, Event)>,
    /// Late results that an earlier run has recorded since the last commit, with their versions.
    pub late: Vec<(u64, Arc<ToolFinish>)>,
}

impl Committed {
    pub(super) fn nothing(version: u64) -> Self {
        Self { version, ..Self::default() }
    }

    /// Adds the events of one append.
    pub(super) fn take(&mut self, events: Vec<Event>) {
        if self.events.is_empty() {
            self.events = events;
        } else {
            self.events.extend(events);
        }
    }

    /// Records what others appended before the next of these events.
    pub(super) fn skip(&mut self, missed: &[StoredAppend]) {
        if !self.events.is_empty() {
            let events = missed.iter().map(|append| u64::from(append.count)).sum();
            self.others.push((self.events.len(), events));
        }
    }

    pub(super) fn up_to(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// Returns the events that the stream has to show, in log order, each with its version: the
    /// events of this commit and those that another worker of the same run has recorded since the
    /// last commit. That worker may not have written its watermark yet, and the stream ignores a
    /// watermark that is older than its last one.
    pub fn displayed_events(&self) -> impl Iterator<Item = (u64, &Event)> {
        let own = self.by_others.is_empty().then(|| self.numbered());
        own.into_iter().flatten().chain(self.merged_events())
    }

    /// Returns the events and those of the other worker, in log order. Empty if the other worker recorded none.
    fn merged_events(&self) -> Vec<(u64, &Event)> {
        if self.by_others.is_empty() {
            return Vec::new();
        }
        let by_others = self.by_others.iter().map(|(version, event)| (*version, event));
        let mut events: Vec<_> = by_others.chain(self.numbered()).collect();
        events.sort_by_key(|(version, _)| *version);
        events
    }

    /// Returns the events, each with its version in the log.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Event)> {
        let of_others = |before: usize| -> u64 {
            self.others.iter().filter(|(at, _)| *at <= before).map(|(_, events)| events).sum()
        };
        let all = self.events.len() as u64 + of_others(self.events.len());
        let before = self.version.saturating_sub(all);
        (0..)
            .zip(&self.events)
            .map(move |(index, event)| (before + of_others(index) + index as u64 + 1, event))
    }
}
