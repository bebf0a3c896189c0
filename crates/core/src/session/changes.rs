//! What has changed the custom state, so that it can be had as it was at each checkpoint.
//!
//! A copy of the state for each checkpoint would take room that grows with the square of a session's
//! length. Kept are the changes, which the log holds as well, and whole states only as often as the changes
//! since the last one weigh as much as it does. So it all stays within a multiple of what the log holds, and
//! going back replays changes of the weight of one state, however long the session is.

use std::sync::Arc;

use serde_json::Value;

use crate::event::ToolFinish;
use crate::state::{Patch, weight};

/// One change of the state.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// A call's, shared with its result.
    Call(Arc<ToolFinish>),
    /// A hook's, say.
    Other(Arc<Patch>),
}

impl Change {
    pub(super) fn patch(&self) -> &Patch {
        match self {
            Self::Call(finish) => &finish.state_patch,
            Self::Other(patch) => patch,
        }
    }
}

/// The changes of a session's state, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    made: Vec<Change>,
    /// The state after so many changes.
    wholes: Vec<(usize, Arc<Value>)>,
    /// What the last of those weighs, and the changes since.
    weights: (usize, usize),
}

impl Changes {
    /// The state that a session begins with.
    pub(super) fn begin(&mut self, state: &Arc<Value>) {
        *self = Self::default();
        self.keep_whole(state);
    }

    /// Keeps a change that has made the state what it is.
    pub(super) fn made(&mut self, change: Change, state: &Arc<Value>) {
        self.weights.1 += change.patch().weight();
        self.made.push(change);
        if self.weights.1 > self.weights.0 {
            self.keep_whole(state);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.made.len()
    }

    /// The state after the first so many changes.
    pub(super) fn state_after(&self, count: usize) -> Arc<Value> {
        let whole = self.wholes.iter().rfind(|(at, _)| *at <= count);
        let (at, mut state) = whole.cloned().unwrap_or_default();
        for change in self.made.get(at..count).unwrap_or_default() {
            change.patch().apply(Arc::make_mut(&mut state));
        }
        state
    }

    /// Forgets, and returns, all but the first so many changes.
    pub(super) fn split_off(&mut self, count: usize) -> Self {
        let made = self.made.split_off(count.min(self.made.len()));
        let whole = self.wholes.partition_point(|(at, _)| *at <= count);
        let tail = Self { made, wholes: self.wholes.split_off(whole), weights: self.weights };
        if !tail.made.is_empty() {
            self.weigh();
        }
        tail
    }

    /// Takes back what was split off.
    pub(super) fn put_back(&mut self, tail: Self) {
        self.made.extend(tail.made);
        self.wholes.extend(tail.wholes);
        self.weights = tail.weights;
    }

    fn keep_whole(&mut self, state: &Arc<Value>) {
        self.wholes.push((self.made.len(), Arc::clone(state)));
        self.weights = (weight(state), 0);
    }

    fn weigh(&mut self) {
        let (at, whole) = self.wholes.last().map_or((0, 0), |(at, it)| (*at, weight(it)));
        let since = self.made.iter().skip(at).map(|change| change.patch().weight()).sum();
        self.weights = (whole, since);
    }
}
