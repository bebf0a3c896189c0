//! The part of a session that grows with each step. It is append-only, except for rewinds.

use std::sync::Arc;

use super::changes::{Change, Changes};
use super::fold_state::{FoldState, Unpaired};
use super::rewind::START_OF_SESSION;
use super::step_record::StepRecord;
use super::{Checkpoint, RunRecord};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::id::{RunId, SessionId};
use crate::message::SharedMessage;
use crate::trace::TraceParent;
use crate::usage::UsageEntry;

/// The part of a session that grows with each step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct History {
    pub transcript: Vec<SharedMessage>,
    pub past_runs: Vec<RunRecord>,
    pub checkpoints: Vec<Checkpoint>,
    pub usage_entries: Vec<UsageEntry>,
    /// The data for a rewind to each of the checkpoints.
    pub checkpoint_states: Vec<CheckpointState>,
    /// The changes of the custom state.
    pub changes: Changes,
    /// Removed parts of the history that the store has not acknowledged yet.
    pub cuts: Vec<Cut>,
}

/// The history that a fold adds to, if it has one. The fold of an overview has none.
#[derive(Debug)]
pub(super) struct HistorySink<'a>(pub Option<&'a mut History>);

impl HistorySink<'_> {
    /// Adds to the history, if there is one.
    pub(super) fn add(&mut self, add: impl FnOnce(&mut History)) {
        if let Some(history) = self.0.as_deref_mut() {
            add(history);
        }
    }
}

/// The data for a rewind to a checkpoint, in addition to the [`Checkpoint`] itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CheckpointState {
    /// The number of state changes before the checkpoint.
    pub changes: usize,
    pub closed: Arc<StepRecord>,
    pub turn_steps: u32,
    pub corrections: u32,
    pub model_failures: u32,
    /// The trace that a caller gave to the turn.
    pub trace: Option<TraceParent>,
}

impl CheckpointState {
    pub(super) fn of(fold_state: &FoldState, changes: usize, closed: &Arc<StepRecord>) -> Self {
        Self {
            changes,
            closed: Arc::clone(closed),
            turn_steps: fold_state.turn_steps,
            corrections: fold_state.corrections,
            model_failures: fold_state.model_failures,
            trace: fold_state.rare.trace,
        }
    }
}

/// The point to which a session is rewound.
#[derive(Debug)]
pub(super) enum RewindTarget {
    /// The start of the session, before its first message.
    Start,
    Checkpoint(Checkpoint, CheckpointState),
}

/// The part of the history that an event removed, kept until the store acknowledges the event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    version: u64,
    /// The numbers of messages, checkpoints and state changes that were left.
    left: (usize, usize, usize),
    messages: Vec<SharedMessage>,
    checkpoints: Vec<Checkpoint>,
    checkpoint_states: Vec<CheckpointState>,
    changes: Changes,
    /// The usage of the original session, if the event is a fork.
    usage: Option<Vec<UsageEntry>>,
}

impl History {
    /// Returns the checkpoint at a version, if a step was closed there.
    pub(super) fn checkpoint(&self, session: &SessionId, version: u64) -> Result<&Checkpoint> {
        let found =
            self.checkpoints.binary_search_by_key(&version, |checkpoint| checkpoint.version).ok();
        found.and_then(|index| self.checkpoints.get(index)).ok_or_else(|| {
            let message = match self.checkpoints.last() {
                Some(last) => {
                    format!(
                        "no step was closed at version {version}; the last one was closed at {}",
                        last.version
                    )
                }
                None => "no step of the session is closed yet".to_owned(),
            };
            Error::new(ErrorCode::CheckpointNotFound, message).with_context("session", session)
        })
    }

    /// Checks that a rewind can have this target.
    pub(super) fn check_rewind_target(&self, session: &SessionId, version: u64) -> Result<()> {
        if version == START_OF_SESSION {
            return Ok(());
        }
        self.checkpoint(session, version).map(drop)
    }

    /// Returns the step with that number as it was when it was closed, even if it no longer affects
    /// the turn.
    pub(super) fn closed_step(&self, step: u32) -> Option<&StepRecord> {
        let mut steps = self.checkpoint_states.iter().rev().map(|saved| &*saved.closed);
        steps.find(|closed| closed.reply.step == step)
    }

    /// Returns `true` if a run that ended before the last one has this id.
    pub(super) fn has_run(&self, id: &RunId) -> bool {
        self.past_runs.iter().any(|run| run.id == *id)
    }

    /// Records a state change.
    pub(super) fn changed(&mut self, change: Change, fold_state: &FoldState) {
        self.changes.made(change, &fold_state.state);
    }

    /// Records a step that was closed at the end of the log.
    pub(super) fn close_step(&mut self, fold_state: &FoldState, closed: &Arc<StepRecord>) {
        self.checkpoints.push(Checkpoint {
            version: fold_state.position.version,
            step: closed.reply.step,
            turn: fold_state.turn,
            at: None,
            messages: fold_state.messages,
        });
        self.checkpoint_states.push(CheckpointState::of(fold_state, self.changes.count(), closed));
    }

    /// Fills in the time of entries that were added before the store's response provided it.
    pub(super) fn stamp(&mut self, at: Timestamp) {
        for entry in self.usage_entries.iter_mut().rev() {
            if entry.at.is_some() {
                break;
            }
            entry.at = Some(at);
        }
        if let Some(past) = self.past_runs.last_mut() {
            past.ended.get_or_insert(at);
        }
        for checkpoint in self.checkpoints.iter_mut().rev() {
            if checkpoint.at.is_some() {
                break;
            }
            checkpoint.at = Some(at);
        }
    }

    /// Removes the original's usage from a fork.
    pub(super) fn fork(&mut self, version: u64) {
        let usage = std::mem::take(&mut self.usage_entries);
        let left = (self.transcript.len(), self.checkpoints.len(), self.changes.count());
        self.cut(version, left, Some(usage));
    }

    /// Removes everything after the target of a rewind. Returns `None` if there is no such target.
    pub(super) fn rewind(&mut self, version: u64, to: u64) -> Option<RewindTarget> {
        if to == START_OF_SESSION {
            self.cut(version, (0, 0, 0), None);
            return Some(RewindTarget::Start);
        }
        let index = self.checkpoints.partition_point(|checkpoint| checkpoint.version < to);
        let found = self.checkpoints.get(index).zip(self.checkpoint_states.get(index));
        let (checkpoint, saved) = found.map(|(at, saved)| (at.clone(), saved.clone()))?;
        self.cut(version, (checkpoint.messages, index + 1, saved.changes), None);
        Some(RewindTarget::Checkpoint(checkpoint, saved))
    }

    fn cut(&mut self, version: u64, left: (usize, usize, usize), usage: Option<Vec<UsageEntry>>) {
        fn tail<T>(of: &mut Vec<T>, from: usize) -> Vec<T> {
            of.split_off(from.min(of.len()))
        }
        let (messages, checkpoints, changes) = left;
        self.cuts.push(Cut {
            version,
            left,
            messages: tail(&mut self.transcript, messages),
            checkpoints: tail(&mut self.checkpoints, checkpoints),
            checkpoint_states: tail(&mut self.checkpoint_states, checkpoints),
            changes: self.changes.split_off(changes),
            usage,
        });
    }

    /// Undoes every cut that was made after a version. A rollback calls this and undoes the rest
    /// itself.
    pub(super) fn undo_cuts(&mut self, version: u64) {
        while let Some(cut) = self.cuts.pop_if(|cut| cut.version > version) {
            // Entries added after the cut do not belong to the restored history.
            let (messages, checkpoints, changes) = cut.left;
            self.transcript.truncate(messages);
            self.checkpoints.truncate(checkpoints);
            self.checkpoint_states.truncate(checkpoints);
            self.changes.split_off(changes);
            self.changes.restore(cut.changes);
            self.transcript.extend(cut.messages);
            self.checkpoints.extend(cut.checkpoints);
            self.checkpoint_states.extend(cut.checkpoint_states);
            if let Some(usage) = cut.usage {
                self.usage_entries = usage;
            }
        }
    }

    /// Shifts the checkpoints for healed results, which are inserted after the last step of an
    /// imported log and move the messages after it.
    pub(super) fn shift_checkpoints(&mut self, healed: &[Unpaired]) {
        for checkpoint in &mut self.checkpoints {
            let before = healed.iter().filter(|call| call.insert_at <= checkpoint.messages).count();
            checkpoint.messages += before;
        }
    }

    /// Undoes [`shift_checkpoints`](Self::shift_checkpoints).
    pub(super) fn unshift_checkpoints(&mut self, healed: &[Unpaired]) {
        for checkpoint in &mut self.checkpoints {
            let places = healed.iter().zip(0..).map(|(call, shift)| call.insert_at + shift);
            checkpoint.messages -= places.filter(|place| *place < checkpoint.messages).count();
        }
    }
}
