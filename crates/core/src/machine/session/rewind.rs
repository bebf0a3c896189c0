//! Rewinding a session to a checkpoint, and the fold's part of forking.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fold_state::{ForkOrigin, LastCheckpoint};
use super::history::{History, HistorySink, RewindTarget};
use super::step_record::StepRecord;
use super::{Checkpoint, RunStatus, Session, SessionOverview};
use crate::budget::BudgetUsage;
use crate::error::{Error, ErrorCode, Result};
use crate::event::Event;
use crate::id::{RunId, SessionId};
use crate::store::SessionStatus;
use crate::usage::UsageTotals;

/// The version to which [`ResumeOptions::checkpoint`](crate::run_options::ResumeOptions::checkpoint)
/// rewinds a session to its start, before its first message. No checkpoint has this version.
pub const START_OF_SESSION: u64 = 0;

impl Session {
    /// Returns the checkpoint at a version.
    ///
    /// # Errors
    /// Returns [`ErrorCode::CheckpointNotFound`] if no step was closed there, or a rewind removed
    /// the checkpoint.
    pub fn checkpoint(&self, version: u64) -> Result<&Checkpoint> {
        self.history.checkpoint(self.id(), version)
    }

    /// Checks that the session can be rewound to a version: that of a checkpoint, or
    /// [`START_OF_SESSION`].
    ///
    /// # Errors
    /// Returns the error of [`checkpoint`](Self::checkpoint).
    pub fn check_rewind_target(&self, version: u64) -> Result<()> {
        self.history.check_rewind_target(self.id(), version)
    }

    /// Returns the checkpoint after a step.
    ///
    /// # Errors
    /// Returns [`ErrorCode::CheckpointNotFound`] if the step was not closed, or a rewind removed
    /// the checkpoint.
    pub fn checkpoint_after(&self, step: u32) -> Result<&Checkpoint> {
        checkpoint_after(self.checkpoints(), self.id(), step)
    }

    /// Returns the step with that number as it was when it was closed, even if it no longer affects
    /// the turn.
    pub(super) fn step_at_checkpoint(&self, step: u32) -> Option<&StepRecord> {
        self.history.closed_step(step)
    }
}

/// Returns the checkpoint after a step, among the checkpoints of a session.
///
/// # Errors
/// Returns [`ErrorCode::CheckpointNotFound`] if there is none.
pub fn checkpoint_after<'a>(
    checkpoints: &'a [Checkpoint],
    session: &SessionId,
    step: u32,
) -> Result<&'a Checkpoint> {
    checkpoints.iter().find(|checkpoint| checkpoint.step == step).ok_or_else(|| {
        let message = format!("the session has no checkpoint after step {step}");
        Error::new(ErrorCode::CheckpointNotFound, message).with_context("session", session)
    })
}

impl SessionOverview {
    /// Returns the origin of this session, if it is a fork.
    #[must_use]
    pub fn forked(&self) -> Option<&ForkOrigin> {
        self.fold_state.rare.forked.as_deref()
    }

    pub(super) fn check_forked(&self, event: &Event, from: &SessionId, at: u64) -> Result<()> {
        let problem = if *from == self.id {
            "a session is no fork of itself"
        } else if self.needs_heal() {
            "calls without a result have to be healed first"
        } else if self.fold_state.step.is_some() {
            "a step is open"
        } else if self.fold_state.checkpoint.map(|last| last.version) != Some(at) {
            "no step was closed there"
        } else {
            return Ok(());
        };
        Err(self.illegal(event, problem))
    }

    pub(super) fn check_rewound(
        &self,
        event: &Event,
        to: u64,
        run: Option<&RunId>,
        history: Option<&History>,
    ) -> Result<()> {
        let current = self.current_run().map(|current| &current.id);
        let problem = if self.needs_heal() {
            "calls without a result have to be healed first"
        } else if current.is_some() && current == run {
            "a run cannot rewind past its own start"
        } else if self.open_children().next().is_some() {
            "a child is open"
        } else if let Some(history) = history {
            match history.check_rewind_target(&self.id, to) {
                Err(_) => "no step was closed there",
                Ok(()) => return Ok(()),
            }
        } else {
            "it needs the history"
        };
        Err(self.illegal(event, problem))
    }

    /// Applies a fork. From here on the log belongs to this session: nothing of the original
    /// continues in it, and the original's usage is not counted twice.
    pub(super) fn take_fork(
        &mut self,
        from: &SessionId,
        at: u64,
        tags: &BTreeMap<String, String>,
        sink: &mut HistorySink<'_>,
    ) {
        self.tags = Arc::new(tags.clone());
        self.parent = None;
        let fold_state = &mut self.fold_state;
        sink.add(|history| history.fork(fold_state.position.version));
        fold_state.next_fencing_token();
        fold_state.created_at = None;
        let ended = fold_state.checkpoint.and_then(|last| last.at);
        let (session, step) = (from.clone(), fold_state.last_step);
        let forked = ForkOrigin { session, version: at, step };
        let rare = fold_state.rare_mut();
        rare.forked = Some(Arc::new(forked));
        rare.companions = Arc::default();
        rare.queue.clear();
        // The requests were for the original, not for this session.
        rare.interrupt = None;
        rare.abort = None;
        rare.honoured = None;
        rare.cleared = None;
        rare.trace = None;
        fold_state.totals = UsageTotals::default();
        fold_state.spent = BudgetUsage::default();
        fold_state.seen = None;
        fold_state.short_of_tool_calls = false;
        if let Some(run) = &mut fold_state.run {
            // The run's chunks are in the original's stream.
            run.stream_from = 0;
            if run.status == RunStatus::Running {
                run.status = RunStatus::Interrupted;
                run.ended = ended;
            }
        }
        fold_state.status = SessionStatus::Interrupted;
    }

    /// Applies a rewind. The usage still counts, and step numbers are not reused.
    pub(super) fn rewind(&mut self, to: u64, sink: &mut HistorySink<'_>) {
        let Some(history) = sink.0.as_deref_mut() else { return };
        let fold_state = &mut self.fold_state;
        let version = fold_state.position.version;
        let Some(target) = history.rewind(version, to) else { return };
        fold_state.rewound_at = version;
        // The time between the last append of the previous run and the start of the next one does
        // not count.
        fold_state.seen = None;
        if let Some(step) = fold_state.step.take() {
            let open = step.pairs().filter(|(_, state)| state.finish.is_none());
            let open = open.map(|(call, _)| call.id.clone());
            Arc::make_mut(&mut fold_state.rare_mut().dropped).extend(open);
        }
        match target {
            RewindTarget::Checkpoint(checkpoint, saved) => {
                fold_state.messages = checkpoint.messages;
                fold_state.checkpoint =
                    Some(LastCheckpoint { version: checkpoint.version, at: checkpoint.at });
                fold_state.turn = checkpoint.turn;
                fold_state.state = history.changes.state_after(saved.changes);
                fold_state.set_trace(saved.trace);
                fold_state.turn_steps = saved.turn_steps;
                fold_state.corrections = saved.corrections;
                // A failed model call is retried, as when a failed run is resumed.
                let failed = saved.closed.reply.error.is_some();
                fold_state.model_failures = if failed { 0 } else { saved.model_failures };
                fold_state.closed = (!failed).then_some(saved.closed);
            }
            RewindTarget::Start => {
                fold_state.messages = 0;
                fold_state.checkpoint = None;
                fold_state.turn = 0;
                fold_state.set_trace(None);
                fold_state.state = history.changes.state_after(0);
                fold_state.turn_steps = 0;
                fold_state.corrections = 0;
                fold_state.model_failures = 0;
                fold_state.closed = None;
            }
        }
        fold_state.rewound = true;
        if fold_state.run.as_ref().is_none_or(|run| run.status != RunStatus::Running) {
            fold_state.status = SessionStatus::Interrupted;
        }
    }
}
