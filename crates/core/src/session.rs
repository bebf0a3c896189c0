//! The session: the fold of its log.

mod align;
mod apply;
mod begin;
mod changes;
mod children;
mod delete;
mod family;
mod folds;
mod fork;
mod journal;
mod ledger;
mod legality;
mod load;
mod page;
mod people;
mod request;
mod shown;
mod spending;
mod submit;
mod transfer;
mod travel;
mod tree;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

pub use align::{Alignment, align_ended, alignment};
pub use apply::result_message;
pub use begin::{BeginRun, abort_events, execute_events, resume_events, terminate_events};
pub use delete::{clear_stream, delete_session};
pub use family::{
    Lineage, Notice, Standing, Stopping, fold_and_standing, is_taken_care_of, is_waited_for,
    lineage, look_for_news, news_below, standing,
};
pub use folds::{Folds, Logs, MAX_FOLDED_EVENTS, MAX_FOLDS};
pub use fork::fork;
pub use journal::{Committed, Durability, Journal, JournalParts, StartOutcome};
pub use ledger::{
    Answered, ChildCall, ClosedStep, CompanionRecord, OpenCall, OpenStep, QueuedMessage, Request,
    SettledCall, StartedCall, Waiting,
};
pub use load::{catch_up, load, load_events};
pub use page::{SessionPage, StreamStatus, session_page};
pub use people::{WAIT_USAGE, report_waiting};
pub use request::{Outside, RequestKind, pass_down, queue_message, request};
pub use shown::{boundaries, end_of_call, late_end};
pub use submit::{CallRef, PendingView, Submission, pending_calls, submit};
pub use transfer::{ExportedSession, SessionExport, export_session, import_session};
pub use travel::{ForkOrigin, rewind_events};
pub use tree::usage_of_tree;

use crate::clock::Timestamp;
use crate::error::ErrorRecord;
use crate::event::{ParentRef, Suspension, Trigger};
use crate::id::{CallId, RunId, SessionId};
use crate::json::Json;
use crate::message::{Message, SharedMessage, ToolCall};
use crate::store::{Position, SessionStatus, Summary};
use crate::stream::{Effect, Writer};
use crate::usage::{Usage, UsageEntry};
use changes::Changes;
use ledger::Ledger;
use travel::{Cut, Mark};

/// A session as its log tells it: transcript, state, runs, usage, what is under way.
///
/// It changes only by [`apply`](Self::apply), which refuses what is not legal. The transcript is
/// append-only and shared; everything else is small, so a [`Savepoint`] costs little.
#[derive(Debug, Clone)]
pub struct Session {
    id: SessionId,
    agent: Arc<str>,
    tags: BTreeMap<String, String>,
    parent: Option<ParentRef>,
    ledger: Ledger,
    transcript: Vec<SharedMessage>,
    past_runs: Vec<RunRecord>,
    checkpoints: Vec<Checkpoint>,
    usage_entries: Vec<UsageEntry>,
    /// What going back to each of the checkpoints takes.
    marks: Vec<Mark>,
    /// What made the state what it is.
    changes: Changes,
    /// What was cut off since the store acknowledged something.
    cuts: Vec<Cut>,
}

/// One run, as the fold keeps it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// The run.
    pub id: RunId,
    /// The turn that it works on, from 1.
    pub turn: u32,
    /// Why it began.
    pub trigger: Trigger,
    /// The version of the log at which it began: greater than that of every run before it, and so the
    /// [fencing token](crate::tool::ToolContext::fencing_token) of its tools.
    pub version: u64,
    /// The kind of runtime.
    pub runtime: Arc<str>,
    /// How it stands.
    pub status: RunStatus,
    /// Steps that it closed.
    pub steps: u32,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The stream's last sequence number when it began: chunks after it are this run's.
    pub stream_from: u64,
    /// The output, if it completed with one.
    pub output: Option<Json>,
    /// The error, if it failed.
    pub error: Option<ErrorRecord>,
    /// The reason that was given, if it was interrupted or aborted.
    pub reason: Option<String>,
    /// What it waits for, if it was suspended.
    pub suspended: Option<Arc<Suspension>>,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Not ended, as far as the log knows.
    Running,
    /// The turn has its answer.
    Completed,
    /// It could not go on.
    Failed,
    /// Stopped at a step boundary on request.
    Interrupted,
    /// Stopped at once on request.
    Aborted,
    /// It waits for people.
    SuspendedClientTool,
    /// It waits for children that wait for people.
    SuspendedAwaitingChildren,
    /// It waits, and part of what it waited for has come already; or it waits for both.
    SuspendedStepPartial,
    /// It stopped without ending, and another run took over.
    Superseded,
}

impl RunStatus {
    /// The name in logs and on the command line.
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

    /// Whether it ended because it has to wait.
    #[must_use]
    pub const fn is_suspended(self) -> bool {
        matches!(
            self,
            Self::SuspendedClientTool
                | Self::SuspendedAwaitingChildren
                | Self::SuspendedStepPartial
        )
    }

    /// Whether a run that resumes the turn goes on in it: limits that the turn has reached hold.
    pub(crate) const fn leaves_turn_open(self) -> bool {
        self.is_suspended() || matches!(self, Self::Superseded | Self::Interrupted)
    }
}

/// A version at which a step was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// The log's version.
    pub version: u64,
    /// The step.
    pub step: u32,
    /// The turn.
    pub turn: u32,
    /// When it was closed.
    pub at: Option<Timestamp>,
    /// How many messages the transcript has there.
    pub messages: usize,
}

/// A state of a session to go back to, while nothing after it was acknowledged by the store.
#[derive(Debug, Clone)]
pub struct Savepoint {
    ledger: Ledger,
    messages: usize,
    past_runs: usize,
    checkpoints: usize,
    changes: usize,
    usage_entries: usize,
}

impl Session {
    /// A session without any event.
    #[must_use]
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            agent: "".into(),
            tags: BTreeMap::new(),
            parent: None,
            ledger: Ledger::new(),
            transcript: Vec::new(),
            past_runs: Vec::new(),
            checkpoints: Vec::new(),
            usage_entries: Vec::new(),
            marks: Vec::new(),
            changes: Changes::default(),
            cuts: Vec::new(),
        }
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
        self.parent.as_ref()
    }

    /// The session at the top of its tree: the one whose stream it shows in.
    #[must_use]
    pub fn root(&self) -> &SessionId {
        self.parent.as_ref().map_or(&self.id, |parent| &parent.root)
    }

    /// Where its log ends. The append id is that of the last append that was
    /// [settled](Self::settle).
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.ledger.position
    }

    /// The versions before and after the last append that was [settled](Self::settle).
    #[must_use]
    pub fn last_append(&self) -> Range<u64> {
        self.ledger.last_append.clone()
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        self.ledger.status
    }

    /// The conversation. Results of a step follow its reply once the step is closed, in call
    /// order.
    #[must_use]
    pub fn transcript(&self) -> &[SharedMessage] {
        &self.transcript
    }

    /// The custom state.
    #[must_use]
    pub fn state(&self) -> &Arc<Value> {
        &self.ledger.state
    }

    /// The custom state with what the calls of the open step have changed so far: what the next
    /// phase of the step and its hooks see.
    #[must_use]
    pub fn step_state(&self) -> Arc<Value> {
        let mut state = Arc::clone(&self.ledger.state);
        if let Some(step) = &self.ledger.step
            && step.calls.iter().any(OpenCall::has_open_patch)
        {
            step.patch(Arc::make_mut(&mut state));
        }
        state
    }

    /// The run that is not ended, if there is one.
    #[must_use]
    pub fn current_run(&self) -> Option<&RunRecord> {
        self.ledger.run.as_ref().filter(|run| run.status == RunStatus::Running)
    }

    /// The last run, ended or not.
    #[must_use]
    pub fn last_run(&self) -> Option<&RunRecord> {
        self.ledger.run.as_ref()
    }

    /// The writer of the stream for the last run.
    #[must_use]
    pub fn stream_writer(&self) -> Writer {
        let fencing_token = self.last_run().map_or(0, |run| run.version);
        Writer { session: self.id().clone(), fencing_token }
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &RunRecord> {
        self.past_runs.iter().chain(&self.ledger.run)
    }

    /// One run.
    #[must_use]
    pub fn run(&self, id: &RunId) -> Option<&RunRecord> {
        self.runs().find(|run| run.id == *id)
    }

    /// Every version at which a step was closed, oldest first. Those that the session went back
    /// behind are not among them.
    #[must_use]
    pub fn checkpoints(&self) -> &[Checkpoint] {
        &self.checkpoints
    }

    /// The turn, from 1; 0 before the first.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.ledger.turn
    }

    /// The number of the last step of the session; numbers never repeat.
    #[must_use]
    pub fn last_step(&self) -> u32 {
        self.ledger.last_step
    }

    /// Steps of the turn that count against `max_steps`.
    #[must_use]
    pub fn turn_steps(&self) -> u32 {
        self.ledger.turn_steps
    }

    /// Corrections that were sent in this turn.
    #[must_use]
    pub fn corrections(&self) -> u32 {
        self.ledger.corrections
    }

    /// Model calls in a row that failed.
    #[must_use]
    pub fn model_failures(&self) -> u32 {
        self.ledger.model_failures
    }

    /// Runs in a row that took over from one that stopped, without a result in between. Those that
    /// only waited are not counted.
    #[must_use]
    pub fn takeovers(&self) -> u32 {
        self.ledger.takeovers
    }

    /// The step under way: its reply is recorded and it is not closed.
    #[must_use]
    pub fn open_step(&self) -> Option<&OpenStep> {
        self.ledger.step.as_ref()
    }

    /// The last step of the turn, if what it means for the turn is still open.
    #[must_use]
    pub fn closed_step(&self) -> Option<&ClosedStep> {
        self.ledger.closed.as_deref()
    }

    /// A call as the model made it, wherever in the transcript.
    #[must_use]
    pub fn tool_call(&self, id: &CallId) -> Option<&ToolCall> {
        // The calls that are asked for are nearly always those of the last step.
        self.transcript.iter().rev().find_map(|message| match &**message {
            Message::Assistant(assistant) => {
                assistant.tool_calls.iter().find(|call| call.id == *id)
            }
            _ => None,
        })
    }

    /// The request to interrupt the session that no run has honoured yet, if there is one.
    #[must_use]
    pub fn interrupt_request(&self) -> Option<&Request> {
        self.ledger.interrupt.as_ref()
    }

    /// The request to abort the session that no run has honoured yet, if there is one.
    #[must_use]
    pub fn abort_request(&self) -> Option<&Request> {
        self.ledger.abort.as_ref()
    }

    /// Tokens of the whole session. What a fork shares with its original was paid for there, and is
    /// not among them.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.ledger.usage
    }

    /// Tool calls that were run in the whole session.
    #[must_use]
    pub fn tool_calls(&self) -> u64 {
        self.ledger.tool_calls
    }

    /// Amounts that tools recorded, by source type and name.
    #[must_use]
    pub fn recorded_usage(&self) -> &BTreeMap<(String, String), f64> {
        &self.ledger.recorded_usage
    }

    /// Whether the log holds the outcome of this effect. A call that was answered without its tool, as
    /// by an abort, has its result; what a try at it came to was lost.
    #[must_use]
    pub fn has_outcome(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Model { step } => *step <= self.ledger.last_step,
            Effect::Tool { call } | Effect::Child { call }
                if self.ledger.dropped.contains(call) =>
            {
                false
            }
            // A call that begins a child or waits for one is shown before that stands in the log.
            Effect::Tool { call } | Effect::Child { call } => {
                let closed =
                    || call.step().and_then(|step| self.step_at_checkpoint(step)?.call(call));
                match self.open_step().and_then(|step| step.call(call)).or_else(closed) {
                    Some(OpenCall { finish: Some(finish), .. }) => {
                        finish.attempts > 0 || matches!(effect, Effect::Child { .. })
                    }
                    Some(state) => state.child.is_some(),
                    None => call.step().is_some_and(|step| step <= self.ledger.last_step),
                }
            }
        }
    }

    /// Whether an imported log left calls without a result; then healing comes first.
    #[must_use]
    pub fn needs_heal(&self) -> bool {
        !self.ledger.unpaired.is_empty()
    }

    /// The calls of an imported log that have no result.
    pub fn unpaired_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.ledger.unpaired.iter().map(|open| &open.call)
    }

    /// What the head of the session has to say after the events applied so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            status: self.ledger.status,
            run: self.current_run().map(|run| run.id.clone()),
            runtime: match &self.ledger.run {
                Some(run) => Arc::clone(&run.runtime),
                None => "".into(),
            },
            pending: self.waiting_calls(),
            wake_at: self.wake_at(),
        }
    }

    /// Remembers this state, to [`rollback`](Self::rollback) to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            ledger: self.ledger.clone(),
            messages: self.transcript.len(),
            past_runs: self.past_runs.len(),
            checkpoints: self.checkpoints.len(),
            changes: self.changes.count(),
            usage_entries: self.usage_entries.len(),
        }
    }

    /// Forgets everything applied since the savepoint was made.
    pub fn rollback(&mut self, savepoint: Savepoint) {
        self.mend(savepoint.position().version);
        self.checkpoints.truncate(savepoint.checkpoints);
        self.marks.truncate(savepoint.checkpoints);
        self.changes.split_off(savepoint.changes);
        if self.ledger.unpaired.is_empty() {
            self.unshift_checkpoints(&savepoint.ledger.unpaired);
            // A heal is the one change in the middle of the transcript.
            for (shift, open) in savepoint.ledger.unpaired.iter().enumerate().rev() {
                self.transcript.remove(open.insert_at + shift);
            }
        }
        if savepoint.position().version == 0 {
            self.agent = "".into();
            self.tags.clear();
            self.parent = None;
            self.changes = Changes::default();
        }
        // What is known of the time stays known.
        let now = self.ledger.clock;
        self.ledger = savepoint.ledger;
        self.observe(now);
        self.transcript.truncate(savepoint.messages);
        self.past_runs.truncate(savepoint.past_runs);
        self.usage_entries.truncate(savepoint.usage_entries);
    }
}

impl Savepoint {
    /// Where the log ended when the savepoint was made.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.ledger.position
    }
}

#[cfg(test)]
mod tests;
