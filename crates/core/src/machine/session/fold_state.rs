//! The small, mutable part of a session, which a savepoint copies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step_record::StepRecord;
use super::{RunRecord, RunStatus};
use crate::budget::{Budget, BudgetUsage};
use crate::clock::Timestamp;
use crate::event::{ChildStart, ToolFinish};
use crate::id::{CallId, RequestId, SessionId};
use crate::message::{ToolCall, UserMessage};
use crate::store::{Position, SessionStatus};
use crate::trace::TraceParent;
use crate::usage::UsageTotals;

/// The checkpoint from which a session was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForkOrigin {
    /// The id of the original session.
    pub session: SessionId,
    /// The version of the checkpoint, in the log of the original and in this one.
    pub version: u64,
    /// The last step that the fork shares with the original.
    pub step: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FoldState {
    pub position: Position,
    /// The versions before and after the last append.
    pub last_append: Range<u64>,
    pub status: SessionStatus,
    pub state: Arc<Value>,
    pub run: Option<RunRecord>,
    /// The number of runs before `run`.
    pub past_runs: u32,
    pub turn: u32,
    pub turn_steps: u32,
    pub last_step: u32,
    pub corrections: u32,
    pub model_failures: u32,
    /// The number of consecutive takeovers and of work items that were retried, without a result in
    /// between.
    pub takeovers: u32,
    pub step: Option<StepRecord>,
    pub closed: Option<Arc<StepRecord>>,
    /// The number of messages in the transcript.
    pub messages: usize,
    /// The last checkpoint.
    pub checkpoint: Option<LastCheckpoint>,
    /// The version of the last rewind event, or 0 without one.
    pub rewound_at: u64,
    /// The usage of the session and of its tree, added up.
    pub totals: UsageTotals,
    /// The latest known time of the store's clock.
    pub clock: Timestamp,
    /// The time of the append that created the session or forked it off.
    pub created_at: Option<Timestamp>,
    /// The budget usage up to the last append.
    pub spent: BudgetUsage,
    /// The greatest [`Writer::fencing_token`](crate::stream::Writer) of the session so far.
    pub fencing_token: u64,
    /// `true` until the token was raised to the start time of its run, by the store's clock.
    pub is_token_undated: bool,
    /// The time of the last append of a run in progress, from which its wall time is counted.
    pub seen: Option<Timestamp>,
    /// Whether calls of the last reply were not run because the budget was exhausted.
    pub short_of_tool_calls: bool,
    /// `true` if the session was rewound and no run has started since.
    pub rewound: bool,
    /// The state that most events do not change.
    pub rare: Arc<RarelyChanged>,
}

/// The state that most events do not change. Savepoints share it until it changes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct RarelyChanged {
    /// The interrupt that no run has handled yet.
    pub interrupt: Option<StopRequest>,
    /// The abort that no run has handled yet.
    pub abort: Option<StopRequest>,
    /// The ids of all interrupts and aborts that this session received, or that were cleared before
    /// they arrived.
    pub requests: Arc<BTreeSet<RequestId>>,
    /// The last interrupt that ended a run.
    pub honoured: Option<RequestId>,
    /// The last interrupt that an explicit resume cleared.
    pub cleared: Option<RequestId>,
    pub unpaired: Vec<Unpaired>,
    pub queue: Vec<Arc<QueuedMessage>>,
    /// The request ids of queued messages that have entered the transcript.
    pub taken: Arc<BTreeSet<RequestId>>,
    /// The companions, by name.
    pub companions: Arc<BTreeMap<String, CompanionRecord>>,
    /// The limits that were given to this session.
    pub budget: Option<Arc<Budget>>,
    /// The resolutions of calls that were pending.
    pub settled: Arc<BTreeMap<CallId, ResolvedCall>>,
    /// The origin of the session, if it is a fork.
    pub forked: Option<Arc<ForkOrigin>>,
    /// Calls that had no result when a rewind removed them.
    pub dropped: Arc<BTreeSet<CallId>>,
    /// Late results that earlier runs recorded since the last append of the current run, with their
    /// versions.
    pub late: Vec<(u64, Arc<ToolFinish>)>,
    /// The trace that a caller gave to the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// The data of the last checkpoint that the fold needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastCheckpoint {
    pub version: u64,
    pub at: Option<Timestamp>,
}

/// The resolution of a call that was pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedCall {
    /// The request with this id answered the call.
    Answered(RequestId),
    /// The deadline passed without an answer.
    Expired,
    /// The call received another result, because the run was aborted or the tool no longer exists.
    Dropped,
}

/// A message that has not entered the transcript yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueuedMessage {
    /// The id of the request that queued the message.
    pub request: RequestId,
    /// The queued message.
    pub message: UserMessage,
}

/// A call of an imported log that has no result, and the position in the transcript where its
/// result belongs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Unpaired {
    pub call: ToolCall,
    pub insert_at: usize,
}

impl FoldState {
    pub(super) fn new() -> Self {
        Self {
            position: Position::start(),
            last_append: 0..0,
            status: SessionStatus::Active,
            state: Arc::new(Value::Null),
            run: None,
            past_runs: 0,
            turn: 0,
            turn_steps: 0,
            last_step: 0,
            corrections: 0,
            model_failures: 0,
            takeovers: 0,
            step: None,
            closed: None,
            messages: 0,
            checkpoint: None,
            rewound_at: 0,
            totals: UsageTotals::default(),
            clock: Timestamp::default(),
            created_at: None,
            spent: BudgetUsage::default(),
            fencing_token: 0,
            is_token_undated: false,
            seen: None,
            short_of_tool_calls: false,
            rewound: false,
            rare: Arc::default(),
        }
    }

    /// Returns the rarely changed state for modification. Copies it first if a savepoint shares it.
    pub(super) fn rare_mut(&mut self) -> &mut RarelyChanged {
        Arc::make_mut(&mut self.rare)
    }

    /// Increases the session's fencing token.
    pub(super) fn next_fencing_token(&mut self) {
        self.fencing_token += 1;
        self.is_token_undated = true;
    }

    /// Raises a new fencing token to the time, in milliseconds. If a session is deleted and created
    /// again under the same id, the new session's tokens are therefore greater than those of the
    /// deleted one.
    pub(super) fn date_fencing_token(&mut self, at: Timestamp) {
        if std::mem::take(&mut self.is_token_undated) {
            let at = u64::try_from(at.0).unwrap_or_default();
            self.fencing_token = self.fencing_token.max(at);
        }
    }

    /// Counts a takeover: a run or retry whose predecessor stopped without a result. If the step
    /// only waits for others, the takeover is not counted, because the step cannot have caused the
    /// stop.
    pub(super) fn count_takeover(&mut self) {
        if !self.step.as_ref().is_some_and(StepRecord::only_waits) {
            self.takeovers += 1;
        }
    }

    /// Records a request to stop.
    pub(super) fn record_request(&mut self, id: &RequestId, reason: Option<&str>) -> StopRequest {
        Arc::make_mut(&mut self.rare_mut().requests).insert(id.clone());
        StopRequest { id: id.clone(), reason: reason.map(str::to_owned) }
    }

    /// Drops an interrupt that the caller overrode. If the interrupt is passed down to this session
    /// later, it is ignored.
    pub(super) fn clear_interrupt(&mut self, id: &RequestId) {
        let rare = self.rare_mut();
        Arc::make_mut(&mut rare.requests).insert(id.clone());
        rare.interrupt.take_if(|pending| pending.id == *id);
        rare.cleared = Some(id.clone());
    }

    /// Clears the pending requests, because the turn is over or was interrupted.
    pub(super) fn settle_requests(&mut self, ended: RunStatus) {
        // Without this check, the shared state would be copied although nothing changes.
        let has_requests = self.rare.interrupt.is_some() || self.rare.abort.is_some();
        if !has_requests && ended != RunStatus::Interrupted {
            return;
        }
        let rare = self.rare_mut();
        let interrupt = rare.interrupt.take();
        if ended == RunStatus::Interrupted {
            rare.honoured = interrupt.map(|request| request.id);
        }
        rare.abort = None;
    }

    /// Sets the trace that a caller gave to the turn.
    pub(super) fn set_trace(&mut self, trace: Option<TraceParent>) {
        if self.rare.trace != trace {
            self.rare_mut().trace = trace;
        }
    }

    /// Clears the late results. The current run writes them to the stream.
    pub(super) fn clear_late(&mut self) {
        if !self.rare.late.is_empty() {
            self.rare_mut().late.clear();
        }
    }
}

/// The record of a companion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompanionRecord {
    /// The event that started the companion.
    pub start: Arc<ChildStart>,
    /// The companion's usage as far as it was reported.
    pub spent: BudgetUsage,
}

/// A request to stop that the current run has not handled yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// The request's id.
    pub id: RequestId,
    /// The reason, for display.
    pub reason: Option<String>,
}
