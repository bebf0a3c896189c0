//! The session: the fold of its log.

mod apply;
mod budget_usage;
mod cache;
mod changes;
mod children;
mod delete;
mod family;
mod fold_state;
mod fork;
mod history;
mod journal;
mod load;
mod overview;
mod page;
mod pending_calls;
mod projection;
mod repair;
mod request;
mod rewind;
mod snapshot;
mod start;
mod submit;
mod transfer;
mod tree;
mod usage;
mod validate;

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use apply::{Folding, result_message};
pub use cache::{MAX_CACHED_EVENTS, MAX_CACHED_SESSIONS, SessionCache, SessionReader};
pub use delete::{clear_stream, delete_session};
pub use family::{
    ChildStatus, CompletionNotice, Lineage, StopAction, fold_and_standing, has_waiter,
    is_benign_race, lineage, news_below, overview_and_standing, poll_children, standing,
};
pub use fold_state::{
    AnsweredCall, ChildCall, CompanionRecord, OpenCall, QueuedMessage, Request, ResolvedCall,
    StartedCall, StepRecord, Waiting,
};
pub use fork::fork;
pub use journal::{Committed, Durability, Journal, JournalConfig, StartOutcome};
pub use load::{catch_up, load, load_events};
pub use overview::SessionOverview;
pub use page::{SessionPage, StreamStatus, session_page};
pub use pending_calls::{WAIT_USAGE, report_waiting};
pub use projection::{boundaries, end_of_call, late_end};
pub use repair::{StreamRepair, plan_stream_repair, repair_ended_stream};
pub use request::{Outside, RequestKind, pass_down, queue_message, request};
pub use rewind::{ForkOrigin, rewind_events};
pub use snapshot::{FOLD, SNAPSHOT_EVENTS};
pub use start::{StartRun, abort_events, execute_events, resume_events, terminate_events};
pub use submit::{CallRef, PendingView, Submission, pending_calls, submit};
pub use transfer::{ExportedSession, SessionExport, export_session, import_session};
pub use tree::usage_of_tree;
pub use usage::{MAX_REPORT_SOURCES, UsageQuery, UsageReport, usage_of_sessions};

use crate::clock::Timestamp;
use crate::error::ErrorRecord;
use crate::event::{Suspension, Trigger};
use crate::id::{CallId, RunId, SessionId};
use crate::json::Json;
use crate::message::{Message, SharedMessage, ToolCall};
use crate::store::Position;
use crate::stream::{Effect, Writer};
use changes::Changes;
use history::History;

/// A session as its log tells it: transcript, state, runs, usage, what is under way.
///
/// It changes only by [`apply`](Self::apply), which refuses what is not legal. It is a
/// [`SessionOverview`], which does not grow with each step, and the history, which does and is
/// append-only. So a [`Savepoint`] costs little.
#[derive(Debug, Clone)]
pub struct Session {
    overview: SessionOverview,
    history: History,
    /// The version of the last snapshot that this process knows of.
    snapshot: u64,
}

impl Deref for Session {
    type Target = SessionOverview;

    fn deref(&self) -> &SessionOverview {
        &self.overview
    }
}

/// One run, as the fold keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    overview: SessionOverview,
    past_runs: usize,
    checkpoints: usize,
    changes: usize,
    usage_entries: usize,
}

impl Session {
    /// A session without any event.
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

    /// The conversation. Results of a step follow its reply once the step is closed, in call
    /// order.
    #[must_use]
    pub fn transcript(&self) -> &[SharedMessage] {
        &self.history.transcript
    }

    /// The writer of the stream for the last run. Its fencing token is final once the start of the run is
    /// [settled](Self::settle).
    #[must_use]
    pub fn stream_writer(&self) -> Writer {
        Writer { session: self.id().clone(), fencing_token: self.fold_state.fencing_token }
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &RunRecord> {
        self.history.past_runs.iter().chain(&self.fold_state.run)
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
        &self.history.checkpoints
    }

    /// A call as the model made it, wherever in the transcript.
    #[must_use]
    pub fn tool_call(&self, id: &CallId) -> Option<&ToolCall> {
        // The calls that are asked for are nearly always those of the last step.
        self.history.transcript.iter().rev().find_map(|message| match &**message {
            Message::Assistant(assistant) => {
                assistant.tool_calls.iter().find(|call| call.id == *id)
            }
            _ => None,
        })
    }

    /// Whether the log holds the outcome of this effect. A call that was answered without its tool, as
    /// by an abort, has its result; what a try at it came to was lost.
    #[must_use]
    pub fn has_outcome(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Model { step } => *step <= self.fold_state.last_step,
            Effect::Tool { call } | Effect::Child { call }
                if self.fold_state.dropped.contains(call) =>
            {
                false
            }
            // A call that begins a child or waits for one is shown before that stands in the log.
            Effect::Tool { call } | Effect::Child { call } => {
                let closed =
                    || call.step().and_then(|step| self.history.closed_step(step)?.call(call));
                match self.open_step().and_then(|step| step.call(call)).or_else(closed) {
                    Some(OpenCall { finish: Some(finish), .. }) => {
                        finish.attempts > 0 || matches!(effect, Effect::Child { .. })
                    }
                    Some(state) => state.child.is_some(),
                    None => call.step().is_some_and(|step| step <= self.fold_state.last_step),
                }
            }
        }
    }

    /// Remembers this state, to [`rollback`](Self::rollback) to.
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

    /// Forgets everything applied since the savepoint was made.
    pub fn rollback(&mut self, savepoint: Savepoint) {
        let history = &mut self.history;
        history.mend(savepoint.position().version);
        history.checkpoints.truncate(savepoint.checkpoints);
        history.marks.truncate(savepoint.checkpoints);
        history.changes.split_off(savepoint.changes);
        let unpaired = &savepoint.overview.fold_state.unpaired;
        if self.overview.fold_state.unpaired.is_empty() {
            history.unshift_checkpoints(unpaired);
            // A heal is the one change in the middle of the transcript.
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
        // What is known of the time stays known.
        let now = self.overview.fold_state.clock;
        self.overview = savepoint.overview;
        self.observe(now);
    }
}

impl Savepoint {
    /// Where the log ended when the savepoint was made.
    #[must_use]
    pub fn position(&self) -> &Position {
        self.overview.position()
    }
}

#[cfg(test)]
mod tests;
