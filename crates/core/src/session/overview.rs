//! The part of a session that does not grow with each step: who it is, how it stands, what is under way.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fold_state::{FoldState, OpenCall, Request, StepRecord};
use super::{RunRecord, RunStatus};
use crate::event::{ParentRef, ToolFinish};
use crate::id::{CallId, SessionId};
use crate::message::ToolCall;
use crate::store::{Position, SessionStatus, Summary};
use crate::usage::Usage;

/// A session without its history: all that its log tells but the transcript, the runs before the last
/// one, the checkpoints and the list of what was used.
///
/// It is what a process needs that answers a call, stops a run or looks how a session stands. Its size
/// goes with the custom state, the step under way, the companions, and the ids of requests that the
/// session has been told of, never with the number of steps.
///
/// [`SessionReader::overview`](super::SessionReader::overview) reads it. A [`Session`](super::Session) has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOverview {
    pub(super) id: SessionId,
    pub(super) agent: Arc<str>,
    pub(super) tags: Arc<BTreeMap<String, String>>,
    pub(super) parent: Option<Arc<ParentRef>>,
    pub(super) fold_state: FoldState,
}

impl SessionOverview {
    /// The overview of a session without any event.
    #[must_use]
    pub fn new(id: SessionId) -> Self {
        let fold_state = FoldState::new();
        Self { id, agent: "".into(), tags: Arc::default(), parent: None, fold_state }
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The agent's name.
    #[must_use]
    pub fn agent(&self) -> &Arc<str> {
        &self.agent
    }

    /// Its labels.
    #[must_use]
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    /// Who made it, if it is a child.
    #[must_use]
    pub fn parent(&self) -> Option<&ParentRef> {
        self.parent.as_deref()
    }

    /// The session at the top of its tree: the one whose stream it shows in.
    #[must_use]
    pub fn root(&self) -> &SessionId {
        self.parent.as_ref().map_or(&self.id, |parent| &parent.root)
    }

    /// Where its log ends. The append id is that of the last append that was
    /// [settled](super::Session::settle).
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.fold_state.position
    }

    /// The versions before and after the last append that was [settled](super::Session::settle).
    #[must_use]
    pub fn last_append(&self) -> Range<u64> {
        self.fold_state.last_append.clone()
    }

    /// Results that earlier runs handed in since the last append of the current run, each with its version. Nobody
    /// may have shown them yet.
    #[must_use]
    pub fn late_results(&self) -> &[(u64, Arc<ToolFinish>)] {
        &self.fold_state.late
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        self.fold_state.status
    }

    /// The custom state.
    #[must_use]
    pub fn state(&self) -> &Arc<Value> {
        &self.fold_state.state
    }

    /// The custom state with what the calls of the open step have changed so far: what the next
    /// phase of the step and its hooks see.
    #[must_use]
    pub fn step_state(&self) -> Arc<Value> {
        let mut state = Arc::clone(&self.fold_state.state);
        if let Some(step) = &self.fold_state.step
            && step.calls.iter().any(OpenCall::has_open_patch)
        {
            step.patch(Arc::make_mut(&mut state));
        }
        state
    }

    /// The run that is not ended, if there is one.
    #[must_use]
    pub fn current_run(&self) -> Option<&RunRecord> {
        self.fold_state.run.as_ref().filter(|run| run.status == RunStatus::Running)
    }

    /// The last run, ended or not.
    #[must_use]
    pub fn last_run(&self) -> Option<&RunRecord> {
        self.fold_state.run.as_ref()
    }

    /// How many runs there were before the last one.
    #[must_use]
    pub fn past_runs(&self) -> u32 {
        self.fold_state.past_runs
    }

    /// The turn, from 1; 0 before the first.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.fold_state.turn
    }

    /// The number of the last step of the session; numbers never repeat.
    #[must_use]
    pub fn last_step(&self) -> u32 {
        self.fold_state.last_step
    }

    /// Steps of the turn that count against `max_steps`.
    #[must_use]
    pub fn turn_steps(&self) -> u32 {
        self.fold_state.turn_steps
    }

    /// Corrections that were sent in this turn.
    #[must_use]
    pub fn corrections(&self) -> u32 {
        self.fold_state.corrections
    }

    /// Model calls in a row that failed.
    #[must_use]
    pub fn model_failures(&self) -> u32 {
        self.fold_state.model_failures
    }

    /// Runs in a row that took over from one that stopped, and parts that an engine tried again within a
    /// run, without a result in between. Those that only waited are not counted.
    #[must_use]
    pub fn takeovers(&self) -> u32 {
        self.fold_state.takeovers
    }

    /// The step under way: its reply is recorded and it is not closed.
    #[must_use]
    pub fn open_step(&self) -> Option<&StepRecord> {
        self.fold_state.step.as_ref()
    }

    /// The last step of the turn, if what it means for the turn is still open.
    #[must_use]
    pub fn closed_step(&self) -> Option<&StepRecord> {
        self.fold_state.closed.as_deref()
    }

    /// Returns `true` if the session has made this call, as far as that can be told without the
    /// transcript: a call of the last step, or one whose id is of an earlier step.
    #[must_use]
    pub fn may_have_made(&self, call: &CallId) -> bool {
        let last = self.open_step().or(self.closed_step());
        let of_last = |step: &StepRecord| step.tool_call(call).is_some();
        let earlier = |step: u32| {
            let last = last.map_or(self.last_step() + 1, |step| step.reply.step);
            (1..last).contains(&step)
        };
        last.is_some_and(of_last) || call.step().is_some_and(earlier)
    }

    /// The request to interrupt the session that no run has honoured yet, if there is one.
    #[must_use]
    pub fn interrupt_request(&self) -> Option<&Request> {
        self.fold_state.interrupt.as_ref()
    }

    /// The request to abort the session that no run has honoured yet, if there is one.
    #[must_use]
    pub fn abort_request(&self) -> Option<&Request> {
        self.fold_state.abort.as_ref()
    }

    /// Tokens of the whole session. What a fork shares with its original was paid for there, and is
    /// not among them.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.fold_state.usage
    }

    /// Tool calls that were run in the whole session.
    #[must_use]
    pub fn tool_calls(&self) -> u64 {
        self.fold_state.tool_calls
    }

    /// Amounts that tools recorded, by source type and name.
    #[must_use]
    pub fn recorded_usage(&self) -> &BTreeMap<(String, String), f64> {
        &self.fold_state.recorded_usage
    }

    /// Whether an imported log left calls without a result; then healing comes first.
    #[must_use]
    pub fn needs_heal(&self) -> bool {
        !self.fold_state.unpaired.is_empty()
    }

    /// The calls of an imported log that have no result.
    pub fn unpaired_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.fold_state.unpaired.iter().map(|open| &open.call)
    }

    /// What the head of the session has to say after the events applied so far.
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
