//! The overview: the part of a session that does not grow with each step. It contains identity,
//! status and the work in progress.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fold_state::{FoldState, StopRequest};
use super::step_record::{CallRecord, StepRecord};
use super::{RunRecord, RunStatus};
use crate::clock::Timestamp;
use crate::event::{ParentRef, ToolFinish};
use crate::id::{CallId, SessionId};
use crate::message::ToolCall;
use crate::store::{Position, SessionStatus, Summary};

/// A session without its history: everything that the log determines except the transcript, the
/// runs before the last one, the checkpoints and the usage entries.
///
/// An overview is sufficient to answer a call, stop a run or read a session's status. Its size
/// depends on the custom state, the step in progress, the companions and the ids of received
/// requests, never on the number of steps.
///
/// [`SessionReader::overview`](crate::session::SessionReader::overview) loads an overview. A
/// [`Session`](crate::session::Session) contains one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOverview {
    pub(super) id: SessionId,
    pub(super) agent: Arc<str>,
    pub(super) tags: Arc<BTreeMap<String, String>>,
    pub(super) parent: Option<Arc<ParentRef>>,
    #[serde(rename = "ledger")]
    pub(super) fold_state: FoldState,
}

impl SessionOverview {
    /// Returns the time when the session was created, by the store's clock; 0 before its first
    /// append. For a fork, this is the time of the fork.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.fold_state.created_at.unwrap_or_default()
    }

    /// Creates the overview of a session without any event.
    #[must_use]
    pub fn new(id: SessionId) -> Self {
        let fold_state = FoldState::new();
        Self { id, agent: "".into(), tags: Arc::default(), parent: None, fold_state }
    }

    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the agent's name.
    #[must_use]
    pub fn agent(&self) -> &Arc<str> {
        &self.agent
    }

    /// Returns the session's labels.
    #[must_use]
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    /// Returns the reference to the parent, if the session is a child.
    #[must_use]
    pub fn parent(&self) -> Option<&ParentRef> {
        self.parent.as_deref()
    }

    /// Returns the root of the session's tree. The session is shown in the root's stream.
    #[must_use]
    pub fn root(&self) -> &SessionId {
        self.parent.as_ref().map_or(&self.id, |parent| &parent.root)
    }

    /// Returns the end of the log. The append id is that of the last
    /// [acknowledged](super::Session::acknowledge) append.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.fold_state.position
    }

    /// Returns the versions before and after the last [acknowledged](super::Session::acknowledge) append.
    #[must_use]
    pub fn last_append(&self) -> Range<u64> {
        self.fold_state.last_append.clone()
    }

    /// Returns the late results that earlier runs recorded since the last append of the current
    /// run, each with its version. The stream may not show them yet.
    #[must_use]
    pub fn late_results(&self) -> &[(u64, Arc<ToolFinish>)] {
        &self.fold_state.rare.late
    }

    /// Returns the session's status.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        self.fold_state.status
    }

    /// Returns the custom state.
    #[must_use]
    pub fn state(&self) -> &Arc<Value> {
        &self.fold_state.state
    }

    /// Returns the custom state with the changes that the calls of the open step have made so far.
    /// The next phase of the step and its hooks see this state.
    #[must_use]
    pub fn step_state(&self) -> Arc<Value> {
        let mut state = Arc::clone(&self.fold_state.state);
        if let Some(step) = &self.fold_state.step
            && step.calls.iter().any(CallRecord::has_open_patch)
        {
            step.apply_open_patches(Arc::make_mut(&mut state));
        }
        state
    }

    /// Returns the run that has not ended, if there is one.
    #[must_use]
    pub fn current_run(&self) -> Option<&RunRecord> {
        self.fold_state.run.as_ref().filter(|run| run.status == RunStatus::Running)
    }

    /// Returns the last run, ended or not.
    #[must_use]
    pub fn last_run(&self) -> Option<&RunRecord> {
        self.fold_state.run.as_ref()
    }

    /// Returns the number of runs before the last one.
    #[must_use]
    pub fn past_runs(&self) -> u32 {
        self.fold_state.past_runs
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn run_count(&self) -> u32 {
        self.past_runs() + u32::from(self.last_run().is_some())
    }

    /// Returns the number of the turn, starting at 1, or 0 before the first turn.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.fold_state.turn
    }

    /// Returns the number of the last step of the session. Numbers are never reused.
    #[must_use]
    pub fn last_step(&self) -> u32 {
        self.fold_state.last_step
    }

    /// Returns the number of steps that are no longer open, including those that a rewind removed.
    #[must_use]
    pub fn step_count(&self) -> u32 {
        self.fold_state.last_step.saturating_sub(u32::from(self.fold_state.step.is_some()))
    }

    /// Returns the number of steps of the turn that count against `max_steps`.
    #[must_use]
    pub fn turn_steps(&self) -> u32 {
        self.fold_state.turn_steps
    }

    /// Returns the number of corrections that were sent in this turn.
    #[must_use]
    pub fn corrections(&self) -> u32 {
        self.fold_state.corrections
    }

    /// Returns the number of consecutive failed model calls.
    #[must_use]
    pub fn model_failures(&self) -> u32 {
        self.fold_state.model_failures
    }

    /// Returns the number of consecutive takeovers and of work items that an engine retried within
    /// a run, without a result in between. Runs that only waited are not counted.
    #[must_use]
    pub fn takeovers(&self) -> u32 {
        self.fold_state.takeovers
    }

    /// Returns the step in progress, whose reply is recorded and which is not closed.
    #[must_use]
    pub fn open_step(&self) -> Option<&StepRecord> {
        self.fold_state.step.as_ref()
    }

    /// Returns the step that was closed last. Returns `None` once a reply or a user message follows
    /// the step, or once a run starts another turn or resumes a failed one.
    #[must_use]
    pub fn closed_step(&self) -> Option<&StepRecord> {
        self.fold_state.closed.as_deref()
    }

    /// Returns `true` if the session has made this call, as far as the overview can tell without
    /// the transcript: a call of the last step, or one whose id belongs to an earlier step.
    #[must_use]
    pub fn may_have_call(&self, call: &CallId) -> bool {
        let last = self.open_step().or(self.closed_step());
        let of_last = |step: &StepRecord| step.tool_call(call).is_some();
        let earlier = |step: u32| {
            let last = last.map_or(self.last_step() + 1, |step| step.reply.step);
            (1..last).contains(&step)
        };
        last.is_some_and(of_last) || call.step().is_some_and(earlier)
    }

    /// Returns the interrupt request that no run has handled yet, if there is one.
    #[must_use]
    pub fn interrupt_request(&self) -> Option<&StopRequest> {
        self.fold_state.rare.interrupt.as_ref()
    }

    /// Returns the abort request that no run has handled yet, if there is one.
    #[must_use]
    pub fn abort_request(&self) -> Option<&StopRequest> {
        self.fold_state.rare.abort.as_ref()
    }

    /// Returns `true` if an imported log contains calls without a result. The session has to be
    /// healed first then.
    #[must_use]
    pub fn needs_heal(&self) -> bool {
        !self.fold_state.rare.unpaired.is_empty()
    }

    /// Returns the calls of an imported log that have no result.
    pub fn unpaired_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.fold_state.rare.unpaired.iter().map(|open| &open.call)
    }

    /// Returns the summary for the session's head after the events applied so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            status: self.fold_state.status,
            run: self.current_run().map(|run| run.id.clone()),
            runtime: match &self.fold_state.run {
                Some(run) => Arc::clone(&run.runtime),
                None => "".into(),
            },
            pending: self.waiting_calls(),
            wake_at: self.wake_at(),
        }
    }
}
