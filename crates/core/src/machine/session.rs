//! The session: the state computed from its log (the fold).

mod apply;
mod budget_usage;
mod changes;
mod children;
pub(crate) mod event_chunks;
mod fold_state;
mod history;
mod in_doubt;
mod overview;
mod patches;
mod pending_calls;
mod requests;
mod rewind;
mod snapshot;
mod step_record;
mod trace;
mod validate;

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use apply::FoldOutcome;
pub use event_chunks::{end_of_call, event_chunks, late_end};
pub use fold_state::{CompanionRecord, ForkOrigin, QueuedMessage, ResolvedCall, StopRequest};
pub use overview::SessionOverview;
pub use pending_calls::WAIT_USAGE;
pub use requests::StopKind;
pub use rewind::{START_OF_SESSION, checkpoint_after};
pub use snapshot::{FOLD_VERSION, SNAPSHOT_EVENTS};
pub use step_record::{AnsweredCall, CallRecord, ChildCall, StartedCall, StepRecord, Waiting};

use crate::clock::Timestamp;
use crate::error::ErrorRecord;
use crate::event::{Suspension, Trigger};
use crate::id::{CallId, RunId, SessionId};
use crate::json::Json;
use crate::message::{Message, SharedMessage, ToolCall};
use crate::store::Position;
use crate::stream::{Effect, Writer};
use crate::trace::TraceParent;
use changes::Changes;
use history::History;

/// A session as computed from its log: transcript, state, runs, usage and the work in progress.
///
/// It changes only through [`apply`](Self::apply), which rejects illegal events. It consists of the
/// [`SessionOverview`], which does not grow with each step, and the history, which grows and is
/// append-only. A [`Savepoint`] is therefore cheap.
///
/// Two sessions are equal if their logs are, and if they have observed the same time of the store's
/// clock and know the same snapshot.
///
/// # Examples
///
/// ```no_run
/// use helix_agents_core::session::load;
///
/// # use helix_agents_core::{error::Result, store::StateStore};
/// # async fn example(store: &dyn StateStore) -> Result<()> {
/// let session = load(store, &"ticket-7".into()).await?;
/// println!("{:?} after {} steps", session.status(), session.last_step());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    overview: SessionOverview,
    history: History,
    /// The version of the last snapshot that this process knows.
    snapshot: u64,
}

impl Deref for Session {
    type Target = SessionOverview;

    fn deref(&self) -> &SessionOverview {
        &self.overview
    }
}

/// One run of a session, as kept in the fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    /// The run's id.
    pub id: RunId,
    /// The number of the turn that the run works on, starting at 1.
    pub turn: u32,
    /// The reason why the run was started.
    pub trigger: Trigger,
    /// The version of the log at which the run started. It is greater than that of every earlier
    /// run.
    pub version: u64,
    /// The run's [fencing token](Writer::fencing_token).
    pub fencing_token: u64,
    /// The kind of the runtime that executes the run.
    pub runtime: Arc<str>,
    /// The run's status.
    pub status: RunStatus,
    /// The number of steps that the run closed.
    pub steps: u32,
    /// The time when the run started.
    pub started: Option<Timestamp>,
    /// The time when the run ended.
    pub ended: Option<Timestamp>,
    /// The stream's last sequence number when the run started. Later chunks belong to this run.
    pub stream_from: u64,
    /// The output, if the run completed with one.
    pub output: Option<Json>,
    /// The error, if the run failed.
    pub error: Option<ErrorRecord>,
    /// The given reason, if the run was interrupted or aborted.
    pub reason: Option<String>,
    /// The pending calls and children, if the run was suspended.
    pub suspended: Option<Arc<Suspension>>,
    /// The caller's trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// The log does not contain the end of the run.
    Running,
    /// The turn has its final answer.
    Completed,
    /// The run failed with an error.
    Failed,
    /// The run stopped at a step boundary on request.
    Interrupted,
    /// The run stopped immediately on request.
    Aborted,
    /// The run waits for client tool results or approvals.
    SuspendedClientTool,
    /// The run waits only for children.
    SuspendedAwaitingChildren,
    /// The run waits for client tool results or approvals. In addition, it waits for children, or
    /// some of the step's pending calls already have their results.
    SuspendedStepPartial,
    /// The run stopped without ending, and another run took over.
    Superseded,
}

impl RunStatus {
    /// Returns the name that logs and the command line use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
            Self::SuspendedClientTool => "suspended_client_tool",
            Self::SuspendedAwaitingChildren => "suspended_awaiting_children",
            Self::SuspendedStepPartial => "suspended_step_partial",
            Self::Superseded => "superseded",
        }
    }

    /// Returns `true` if the run ended because it has to wait.
    #[must_use]
    pub const fn is_suspended(self) -> bool {
        matches!(
            self,
            Self::SuspendedClientTool
                | Self::SuspendedAwaitingChildren
                | Self::SuspendedStepPartial
        )
    }

    /// Returns `true` if a run that resumes the session continues the same turn. Limits that the
    /// turn has reached still apply then.
    pub(crate) const fn leaves_turn_open(self) -> bool {
        self.is_suspended() || matches!(self, Self::Superseded | Self::Interrupted)
    }
}

/// A version at which a step was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The version of the log.
    pub version: u64,
    /// The number of the closed step.
    pub step: u32,
    /// The number of the step's turn.
    pub turn: u32,
    /// The time when the step was closed.
    pub at: Option<Timestamp>,
    /// The number of messages in the transcript at this version.
    pub messages: usize,
}

/// A state of a session to roll back to, as long as the store has not acknowledged any later event.
#[derive(Debug, Clone)]
pub struct Savepoint {
    overview: SessionOverview,
    past_runs: usize,
    checkpoints: usize,
    changes: usize,
    usage_entries: usize,
}

impl Session {
    /// Creates a session without events.
    #[must_use]
    pub fn new(id: SessionId) -> Self {
        let (overview, history) = (SessionOverview::new(id), History::default());
        Self { overview, history, snapshot: 0 }
    }

    /// Returns the session without its history: status, run, open step and totals.
    #[must_use]
    pub fn overview(&self) -> &SessionOverview {
        &self.overview
    }

    /// Returns the overview and drops the history.
    #[must_use]
    pub fn into_overview(self) -> SessionOverview {
        self.overview
    }

    /// Returns the conversation. The tool results of a step follow the model's reply once the step
    /// is closed, in call order.
    #[must_use]
    pub fn transcript(&self) -> &[SharedMessage] {
        &self.history.transcript
    }

    /// Returns the stream writer for the last run. Its fencing token is final once the start of the
    /// run is [acknowledged](Self::acknowledge).
    #[must_use]
    pub fn stream_writer(&self) -> Writer {
        let fencing_token = self.fold_state.fencing_token;
        Writer { session: self.id().clone(), created_at: self.created_at(), fencing_token }
    }

    /// Returns all runs, oldest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &RunRecord> {
        self.history.past_runs.iter().chain(&self.fold_state.run)
    }

    /// Returns the run with this id.
    #[must_use]
    pub fn run(&self, id: &RunId) -> Option<&RunRecord> {
        self.runs().find(|run| run.id == *id)
    }

    /// Returns every version at which a step was closed, oldest first. Checkpoints that a rewind
    /// removed are not included.
    #[must_use]
    pub fn checkpoints(&self) -> &[Checkpoint] {
        &self.history.checkpoints
    }

    /// Returns the closed steps with their checkpoints, oldest first. Steps that a rewind removed are not included.
    pub fn closed_steps(&self) -> impl DoubleEndedIterator<Item = (&Checkpoint, &StepRecord)> {
        let steps = self.history.checkpoint_states.iter().map(|saved| &*saved.closed);
        self.history.checkpoints.iter().zip(steps)
    }

    /// Returns a tool call as the model made it, from anywhere in the transcript.
    #[must_use]
    pub fn tool_call(&self, id: &CallId) -> Option<&ToolCall> {
        // Callers nearly always ask for calls of the last step.
        self.history.transcript.iter().rev().find_map(|message| match &**message {
            Message::Assistant(assistant) => {
                assistant.tool_calls.iter().find(|call| call.id == *id)
            }
            _ => None,
        })
    }

    /// Returns `true` if the log contains the outcome of an attempt at this effect. Returns `false`
    /// for a tool call that was answered without running its tool (by an abort, for example): the
    /// log then contains a result, but not the outcome of an attempt.
    #[must_use]
    pub fn has_outcome(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Model { step } => *step <= self.fold_state.last_step,
            Effect::Tool { call } | Effect::Child { call }
                if self.fold_state.rare.dropped.contains(call) =>
            {
                false
            }
            // The stream shows a call that starts a child or waits for one before the log records
            // it.
            Effect::Tool { call } | Effect::Child { call } => {
                let closed =
                    || call.step().and_then(|step| self.history.closed_step(step)?.call(call));
                match self.open_step().and_then(|step| step.call(call)).or_else(closed) {
                    Some(CallRecord { finish: Some(finish), .. }) => {
                        finish.attempts > 0 || matches!(effect, Effect::Child { .. })
                    }
                    Some(state) => state.child.is_some(),
                    None => call.step().is_some_and(|step| step <= self.fold_state.last_step),
                }
            }
        }
    }

    /// Captures the current state for a later [`rollback`](Self::rollback).
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        let History { past_runs, checkpoints, changes, usage_entries, .. } = &self.history;
        Savepoint {
            overview: self.overview.clone(),
            past_runs: past_runs.len(),
            checkpoints: checkpoints.len(),
            changes: changes.count(),
            usage_entries: usage_entries.len(),
        }
    }

    /// Undoes everything applied since the savepoint was made.
    pub fn rollback(&mut self, savepoint: Savepoint) {
        let history = &mut self.history;
        history.undo_cuts(savepoint.position().version);
        history.checkpoints.truncate(savepoint.checkpoints);
        history.checkpoint_states.truncate(savepoint.checkpoints);
        history.changes.split_off(savepoint.changes);
        let unpaired = &savepoint.overview.fold_state.rare.unpaired;
        if self.overview.fold_state.rare.unpaired.is_empty() {
            history.unshift_checkpoints(unpaired);
            // Healing is the only change in the middle of the transcript.
            for (shift, open) in unpaired.iter().enumerate().rev() {
                history.transcript.remove(open.insert_at + shift);
            }
        }
        if savepoint.position().version == 0 {
            history.changes = Changes::default();
        }
        history.transcript.truncate(savepoint.overview.fold_state.messages);
        history.past_runs.truncate(savepoint.past_runs);
        history.usage_entries.truncate(savepoint.usage_entries);
        // The observed clock never goes back.
        let now = self.overview.fold_state.clock;
        self.overview = savepoint.overview;
        self.observe(now);
    }
}

impl Savepoint {
    /// Returns the end of the log when the savepoint was made.
    #[must_use]
    pub fn position(&self) -> &Position {
        self.overview.position()
    }
}
