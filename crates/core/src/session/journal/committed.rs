//! What a commit recorded.

use std::sync::Arc;

use crate::event::{Event, ToolFinish};
use crate::store::StoredAppend;

/// What a commit recorded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Committed {
    /// The events, in order; empty if they are held back until the step is closed.
    pub events: Vec<Event>,
    /// The version after them.
    pub version: u64,
    /// Where events of others lie between these: after how many of these, and how many.
    others: Vec<(usize, u64)>,
    /// Events that another worker of the same run recorded since the last commit, with their versions.
    pub(super) by_others: Vec<(u64, Event)>,
    /// Results that an earlier run handed in since the last commit, with their versions.
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

    /// Notes what others appended before the next of these events.
    pub(super) fn skip(&mut self, missed: &[StoredAppend]) {
        if !self.events.is_empty() {
            let events = missed.iter().map(|append| u64::from(append.count)).sum();
            self.others.push((self.events.len(), events));
        }
    }

    pub(super) fn up_to(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// The events that the stream has to show, in log order, each with its version: those of this commit
    /// and those that another worker of the same run recorded since the last one. That worker may not
    /// have written its mark yet, and the stream ignores a mark that is older than its last.
    #[must_use]
    pub fn shown(&self) -> Vec<(u64, &Event)> {
        let by_others = self.by_others.iter().map(|(version, event)| (*version, event));
        let mut projection: Vec<_> = by_others.chain(self.numbered()).collect();
        projection.sort_by_key(|(version, _)| *version);
        projection
    }

    /// The events, each with its place in the log.
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
