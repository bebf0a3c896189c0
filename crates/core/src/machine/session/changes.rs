//! The changes of the custom state, from which the state at each checkpoint can be reconstructed.
//!
//! One copy of the state per checkpoint would need memory quadratic in the length of the session.
//! Instead, this module keeps the changes, which the log contains as well, and a full copy of the
//! state whenever the changes since the last copy weigh more than that copy. Memory stays within a
//! constant factor of the log's size, and a rewind replays changes of at most the weight of one
//! state, however long the session is.

use std::sync::Arc;

use serde_json::Value;

use crate::event::ToolFinish;
use crate::state::{Patch, weight};

/// One change of the custom state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// A change by a tool call, shared with the call's result.
    Call(Arc<ToolFinish>),
    /// A change from another source, for example a hook.
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
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changes {
    made: Vec<Change>,
    /// Full copies of the state, each with the number of changes before it.
    wholes: Vec<(usize, Arc<Value>)>,
    /// The weight of the last full copy, and the weight of the changes since.
    weights: (usize, usize),
}

impl Changes {
    /// Starts over with the initial state of a session.
    pub(super) fn reset(&mut self, state: &Arc<Value>) {
        *self = Self::default();
        self.keep_whole(state);
    }

    /// Records a change that led to `state`.
    pub(super) fn made(&mut self, change: Change, state: &Arc<Value>) {
        self.weights.1 += change.patch().weight();
        self.made.push(change);
        if self.weights.1 > self.weights.0 {
            self.keep_whole(state);
        }
    }

    /// Returns the number of changes.
    pub(super) fn count(&self) -> usize {
        self.made.len()
    }

    /// Returns the state after the first `count` changes.
    pub(super) fn state_after(&self, count: usize) -> Arc<Value> {
        let whole = self.wholes.iter().rfind(|(at, _)| *at <= count);
        let (at, mut state) = whole.cloned().unwrap_or_default();
        for change in self.made.get(at..count).unwrap_or_default() {
            change.patch().apply(Arc::make_mut(&mut state));
        }
        state
    }

    /// Removes and returns all but the first `count` changes.
    pub(super) fn split_off(&mut self, count: usize) -> Self {
        let made = self.made.split_off(count.min(self.made.len()));
        let whole = self.wholes.partition_point(|(at, _)| *at <= count);
        let tail = Self { made, wholes: self.wholes.split_off(whole), weights: self.weights };
        if !tail.made.is_empty() {
            self.weigh();
        }
        tail
    }

    /// Restores changes that [`split_off`](Self::split_off) removed.
    pub(super) fn restore(&mut self, tail: Self) {
        self.made.extend(tail.made);
        self.wholes.extend(tail.wholes);
        self.weights = tail.weights;
    }

    fn keep_whole(&mut self, state: &Arc<Value>) {
        self.wholes.push((self.made.len(), Arc::clone(state)));
        self.weights = (weight(state), 0);
    }

    fn weigh(&mut self) {
        let (at, whole) = self.wholes.last().map_or((0, 0), |(at, state)| (*at, weight(state)));
        let since = self.made.iter().skip(at).map(|change| change.patch().weight()).sum();
        self.weights = (whole, since);
    }
}
