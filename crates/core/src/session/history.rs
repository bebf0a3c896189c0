//! The part of a session that grows with each step: it is append-only, but for going back.

use std::sync::Arc;

use super::changes::{Change, Changes};
use super::fold_state::{FoldState, StepRecord, Unpaired};
use super::{Checkpoint, RunRecord};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::id::{RunId, SessionId};
use crate::message::SharedMessage;
use crate::usage::UsageEntry;

/// The part of a session that grows with each step.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub transcript: Vec<SharedMessage>,
    pub past_runs: Vec<RunRecord>,
    pub checkpoints: Vec<Checkpoint>,
    pub usage_entries: Vec<UsageEntry>,
    /// The data for going back to each of the checkpoints.
    pub marks: Vec<CheckpointState>,
    /// What made the state what it is.
    pub changes: Changes,
    /// What was cut off since the store acknowledged something.
    pub cuts: Vec<Cut>,
}

/// The history that a fold adds to, if it has one: the fold of an overview does without.
#[derive(Debug)]
pub(super) struct Notes<'a>(pub Option<&'a mut History>);

impl Notes<'_> {
    /// Adds to the history, if there is one.
    pub(super) fn add(&mut self, add: impl FnOnce(&mut History)) {
        if let Some(history) = self.0.as_deref_mut() {
            add(history);
        }
    }
}

/// The data for going back to a checkpoint, beside the checkpoint.
#[derive(Debug, Clone)]
pub(super) struct CheckpointState {
    /// How many changes had made the state what it was.
    pub changes: usize,
    pub closed: Arc<StepRecord>,
    pub turn_steps: u32,
    pub corrections: u32,
    pub model_failures: u32,
}

impl CheckpointState {
    pub(super) fn of(fold_state: &FoldState, changes: usize, closed: &Arc<StepRecord>) -> Self {
        Self {
            changes,
            closed: Arc::clone(closed),
            turn_steps: fold_state.turn_steps,
            corrections: fold_state.corrections,
            model_failures: fold_state.model_failures,
        }
    }
}

/// What an event cut off, until the store has acknowledged it.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    version: u64,
    /// How many messages, checkpoints and changes of the state were left.
    left: (usize, usize, usize),
    messages: Vec<SharedMessage>,
    checkpoints: Vec<Checkpoint>,
    marks: Vec<CheckpointState>,
    changes: Changes,
    /// The usage of the session that it was forked from.
    usage: Option<Vec<UsageEntry>>,
}

impl History {
    /// The checkpoint at a version, if a step was closed there.
    pub(super) fn checkpoint(&self, session: &SessionId, version: u64) -> Result<&Checkpoint> {
        let found = self.checkpoints.binary_search_by_key(&version, |it| it.version).ok();
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

    /// The step of that number, as it was when it was closed; also when it means nothing for the turn
    /// any more.
    pub(super) fn closed_step(&self, step: u32) -> Option<&StepRecord> {
        let mut steps = self.marks.iter().rev().map(|mark| &*mark.closed);
        steps.find(|closed| closed.reply.step == step)
    }

    /// Returns `true` if a run that ended before the last one has this id.
    pub(super) fn has_run(&self, id: &RunId) -> bool {
        self.past_runs.iter().any(|run| run.id == *id)
    }

    /// Keeps a change of the state that was made.
    pub(super) fn changed(&mut self, change: Change, fold_state: &FoldState) {
        self.changes.made(change, &fold_state.state);
    }

    /// Keeps a step that was closed at the end of the log.
    pub(super) fn close_step(&mut self, fold_state: &FoldState, closed: &Arc<StepRecord>) {
        self.checkpoints.push(Checkpoint {
            version: fold_state.position.version,
            step: closed.reply.step,
            turn: fold_state.turn,
            at: None,
            messages: fold_state.messages,
        });
        self.marks.push(CheckpointState::of(fold_state, self.changes.count(), closed));
    }

    /// Fills in the time of what was added before the store had said it.
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

    /// Cuts off what the original used up, from a fork's version on.
    pub(super) fn fork(&mut self, version: u64) {
        let usage = std::mem::take(&mut self.usage_entries);
        let left = (self.transcript.len(), self.checkpoints.len(), self.changes.count());
        self.cut(version, left, Some(usage));
    }

    /// Cuts off what came after the checkpoint at `to`. Returns that checkpoint and its mark.
    pub(super) fn rewind(
        &mut self,
        version: u64,
        to: u64,
    ) -> Option<(Checkpoint, CheckpointState)> {
        let index = self.checkpoints.partition_point(|it| it.version < to);
        let found = self.checkpoints.get(index).zip(self.marks.get(index));
        let (checkpoint, mark) = found.map(|(at, mark)| (at.clone(), mark.clone()))?;
        self.cut(version, (checkpoint.messages, index + 1, mark.changes), None);
        Some((checkpoint, mark))
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
            marks: tail(&mut self.marks, checkpoints),
            changes: self.changes.split_off(changes),
            usage,
        });
    }

    /// Undoes every cut that was made after a version; for a rollback, which undoes the rest.
    pub(super) fn mend(&mut self, version: u64) {
        while let Some(cut) = self.cuts.pop_if(|cut| cut.version > version) {
            // What came after the cut is no part of what it was cut off from.
            let (messages, checkpoints, changes) = cut.left;
            self.transcript.truncate(messages);
            self.checkpoints.truncate(checkpoints);
            self.marks.truncate(checkpoints);
            self.changes.split_off(changes);
            self.changes.put_back(cut.changes);
            self.transcript.extend(cut.messages);
            self.checkpoints.extend(cut.checkpoints);
            self.marks.extend(cut.marks);
            if let Some(usage) = cut.usage {
                self.usage_entries = usage;
            }
        }
    }

    /// Every message after the last step of an imported log that has to be healed moves.
    pub(super) fn shift_checkpoints(&mut self, healed: &[Unpaired]) {
        for checkpoint in &mut self.checkpoints {
            let before = healed.iter().filter(|it| it.insert_at <= checkpoint.messages).count();
            checkpoint.messages += before;
        }
    }

    /// Undoes [`shift_checkpoints`](Self::shift_checkpoints).
    pub(super) fn unshift_checkpoints(&mut self, healed: &[Unpaired]) {
        for checkpoint in &mut self.checkpoints {
            let places = healed.iter().zip(0..).map(|(it, shift)| it.insert_at + shift);
            checkpoint.messages -= places.filter(|place| *place < checkpoint.messages).count();
        }
    }
}
