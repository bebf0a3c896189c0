//! The part of a session that is small and changes: what a savepoint copies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ForkOrigin, RunRecord, RunStatus};
use crate::budget::{Budget, BudgetUsage};
use crate::clock::Timestamp;
use crate::event::{Answer, ChildStart, ModelReply, PendingCall, ToolFinish};
use crate::id::{CallId, RequestId, RunId};
use crate::json::Json;
use crate::message::{ToolCall, UserMessage};
use crate::state::Patch;
use crate::store::{Position, SessionStatus};
use crate::usage::{Usage, UsageTotals};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FoldState {
    pub position: Position,
    /// The versions before and after the last append.
    pub last_append: Range<u64>,
    pub status: SessionStatus,
    pub state: Arc<Value>,
    pub run: Option<RunRecord>,
    /// The number of runs before that one.
    pub past_runs: u32,
    pub turn: u32,
    pub turn_steps: u32,
    pub last_step: u32,
    pub corrections: u32,
    pub model_failures: u32,
    /// Runs in a row that took over from one that stopped, and parts of runs that were tried again, without
    /// a result in between.
    pub takeovers: u32,
    pub step: Option<StepRecord>,
    pub closed: Option<Arc<StepRecord>>,
    /// The interrupt and the abort that no run has honoured yet.
    pub interrupt: Option<Request>,
    pub abort: Option<Request>,
    /// Every interrupt and abort that this session was asked for, or that was cleared before it came.
    pub requests: Arc<BTreeSet<RequestId>>,
    /// The interrupt that was honoured last, and the one that an explicit resume cleared last.
    pub honoured: Option<RequestId>,
    pub cleared: Option<RequestId>,
    /// The number of messages in the transcript.
    pub messages: usize,
    /// The last checkpoint.
    pub checkpoint: Option<LastCheckpoint>,
    /// The version of the last event that went back to a checkpoint; 0 without one.
    pub rewound_at: u64,
    pub usage: Usage,
    /// Usage, added up.
    pub totals: Arc<UsageTotals>,
    pub tool_calls: u64,
    #[serde(with = "pairs")]
    pub recorded_usage: Arc<BTreeMap<(String, String), f64>>,
    pub unpaired: Vec<Unpaired>,
    /// The store's clock, as far as it is known.
    pub clock: Timestamp,
    pub queue: Vec<Arc<QueuedMessage>>,
    /// The requests of messages that have entered the transcript.
    pub taken: Arc<BTreeSet<RequestId>>,
    /// Children that stay, by name.
    pub companions: Arc<BTreeMap<String, CompanionRecord>>,
    /// Limits that were given to this session.
    pub budget: Option<Arc<Budget>>,
    /// What was used of the budget up to the last append.
    pub spent: BudgetUsage,
    /// The greatest [`Writer::fencing_token`](crate::stream::Writer) of the session so far.
    pub fencing_token: u64,
    /// Whether the store has not said yet when the run with that token started.
    pub is_token_undated: bool,
    /// The time of the last append of a run under way: from there on its time is to be counted.
    pub seen: Option<Timestamp>,
    /// Whether calls of the last reply were not run for lack of budget.
    pub short_of_tool_calls: bool,
    /// Calls that waited for people, and what became of them.
    pub settled: Arc<BTreeMap<CallId, ResolvedCall>>,
    /// Where it was forked, if it was.
    pub forked: Option<Arc<ForkOrigin>>,
    /// Whether it went back to a checkpoint, and no run has begun since.
    pub rewound: bool,
    /// Calls that had no result when the session went back behind them.
    pub dropped: Arc<BTreeSet<CallId>>,
    /// Results that earlier runs handed in since the last append of the current run, with their versions.
    pub late: Vec<(u64, Arc<ToolFinish>)>,
}

/// The last checkpoint, as far as the fold needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastCheckpoint {
    pub version: u64,
    pub at: Option<Timestamp>,
}

/// A map whose keys are no text, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serializer};

    type Amounts = Arc<BTreeMap<(String, String), f64>>;

    pub(super) fn serialize<S: Serializer>(amounts: &Amounts, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(amounts.iter())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Amounts, D::Error> {
        let pairs = Vec::<((String, String), f64)>::deserialize(from)?;
        Ok(Arc::new(pairs.into_iter().collect()))
    }
}

/// What became of a call that waited for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedCall {
    /// This request answered it.
    Answered(RequestId),
    /// Nobody answered in time.
    Expired,
    /// It got another result: the run was aborted, or the tool is gone.
    Dropped,
}

/// A message that has not entered the transcript yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// The request that brought it.
    pub request: RequestId,
    /// The message.
    pub message: UserMessage,
}

/// A call of an imported log that has no result, and where its result belongs.
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
            interrupt: None,
            abort: None,
            requests: Arc::default(),
            honoured: None,
            cleared: None,
            messages: 0,
            checkpoint: None,
            rewound_at: 0,
            usage: Usage::default(),
            totals: Arc::default(),
            tool_calls: 0,
            recorded_usage: Arc::default(),
            unpaired: Vec::new(),
            clock: Timestamp::default(),
            queue: Vec::new(),
            taken: Arc::default(),
            companions: Arc::default(),
            budget: None,
            spent: BudgetUsage::default(),
            fencing_token: 0,
            is_token_undated: false,
            seen: None,
            short_of_tool_calls: false,
            settled: Arc::default(),
            forked: None,
            rewound: false,
            dropped: Arc::default(),
            late: Vec::new(),
        }
    }

    /// Gives the session a greater fencing token.
    pub(super) fn next_fencing_token(&mut self) {
        self.fencing_token += 1;
        self.is_token_undated = true;
    }

    /// Makes a new fencing token no less than the time, in milliseconds. The tokens of a session that is created
    /// anew are therefore greater than those of the deleted session of the same id.
    pub(super) fn date_fencing_token(&mut self, at: Timestamp) {
        if std::mem::take(&mut self.is_token_undated) {
            let at = u64::try_from(at.0).unwrap_or_default();
            self.fencing_token = self.fencing_token.max(at);
        }
    }

    /// Counts that another run or another try follows one that stopped without a result. One that only
    /// waits for others is not what stopped it.
    pub(super) fn count_takeover(&mut self) {
        if !self.step.as_ref().is_some_and(StepRecord::only_waits) {
            self.takeovers += 1;
        }
    }

    /// Notes a request to stop.
    pub(super) fn asked(&mut self, id: &RequestId, reason: Option<&str>) -> Request {
        Arc::make_mut(&mut self.requests).insert(id.clone());
        Request { id: id.clone(), reason: reason.map(str::to_owned) }
    }

    /// Drops an interrupt that the caller overrode. If it was not passed down to this session yet, it
    /// comes too late.
    pub(super) fn clear_interrupt(&mut self, id: &RequestId) {
        Arc::make_mut(&mut self.requests).insert(id.clone());
        self.interrupt.take_if(|pending| pending.id == *id);
        self.cleared = Some(id.clone());
    }

    /// The turn is over, or was interrupted: nothing that was asked for is pending any more.
    pub(super) fn settle_requests(&mut self, ended: RunStatus) {
        let interrupt = self.interrupt.take();
        if ended == RunStatus::Interrupted {
            self.honoured = interrupt.map(|request| request.id);
        }
        self.abort = None;
    }
}

/// A step whose reply is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The reply.
    pub reply: Arc<ModelReply>,
    /// Its calls, in call order.
    pub calls: Vec<OpenCall>,
    /// What the model was told about its answer.
    pub correction: Option<UserMessage>,
    /// How many runs have worked on it, the present one included.
    pub runs: u32,
}

impl StepRecord {
    /// Calls without a result that a run works on itself: what is open and waits neither for a child nor
    /// for a human.
    pub fn in_progress(&self) -> impl Iterator<Item = &ToolCall> {
        let own = |state: &OpenCall| {
            state.finish.is_none() && state.child.is_none() && state.pending().is_none()
        };
        self.pairs().filter(move |(_, state)| own(state)).map(|(call, _)| call)
    }

    /// Whether a run of it only waits: some calls are open, and all of those are for others to end.
    pub(super) fn only_waits(&self) -> bool {
        let open = self.calls.iter().any(|call| call.finish.is_none());
        open && self.in_progress().next().is_none()
    }

    /// The call as the model made it.
    #[must_use]
    pub fn tool_call(&self, id: &CallId) -> Option<&ToolCall> {
        self.tool_calls().iter().find(|call| call.id == *id)
    }

    /// All calls as the model made them.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.reply.message.as_deref().map_or(&[], |message| &message.tool_calls)
    }

    /// Calls with what is recorded of them, in call order.
    pub fn pairs(&self) -> impl Iterator<Item = (&ToolCall, &OpenCall)> {
        self.tool_calls().iter().zip(&self.calls)
    }

    /// Its results that change the state, and whose changes the session's state does not hold yet, in
    /// the order in which they apply.
    pub(super) fn open_changes(&self) -> impl Iterator<Item = &Arc<ToolFinish>> {
        let open = || self.calls.iter().filter(|call| call.has_open_patch());
        let finishes = move |finish: bool| {
            open()
                .filter_map(|call| call.finish.as_ref())
                .filter(move |result| result.finish.is_some() == finish)
        };
        finishes(false).chain(finishes(true))
    }

    /// Those changes.
    pub(crate) fn open_patches(&self) -> impl Iterator<Item = &Patch> {
        self.open_changes().map(|result| &result.state_patch)
    }

    /// Applies the state changes of its results that the session's state does not hold yet.
    pub(super) fn patch(&self, state: &mut Value) {
        self.open_patches().for_each(|patch| patch.apply(state));
    }

    /// The arguments that a call runs with: the model's, unless whoever approved it changed them.
    #[must_use]
    pub fn input(&self, id: &CallId) -> Option<Json> {
        let (call, state) = self.pairs().find(|(call, _)| call.id == *id)?;
        match state.answer() {
            Some(Answer::Approved { edited: Some(edited) }) => Some(edited.clone()),
            _ => call.arguments.as_json().cloned(),
        }
    }

    /// What is recorded of a call.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<&OpenCall> {
        self.pairs().find(|(call, _)| call.id == *id).map(|(_, state)| state)
    }
}

/// What is recorded of a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OpenCall {
    /// Its start, if its effect class had it recorded.
    pub started: Option<StartedCall>,
    /// Its result.
    pub finish: Option<Arc<ToolFinish>>,
    /// Whether the result's change of the state is in the session's state already.
    pub patched: bool,
    /// What it waits for from people, if it does or did.
    pub waiting: Option<Arc<Waiting>>,
    /// The child that it was begun for.
    pub child: Option<ChildCall>,
    /// The number of times that an engine tried the call again within a run, because the last try left no
    /// outcome.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A child that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionRecord {
    /// How it was begun.
    pub start: Arc<ChildStart>,
    /// What it is known to have used.
    pub spent: BudgetUsage,
}

/// A call of a sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildCall {
    /// The child.
    pub start: Arc<ChildStart>,
    /// Whether the current run found that it waits.
    pub waits: bool,
}

/// A call that waits for people, or did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// What it waits for.
    pub on: Arc<PendingCall>,
    /// Since when, by the store's clock.
    pub since: Option<Timestamp>,
    /// The answer, once there is one.
    pub answer: Option<AnsweredCall>,
    /// Whether the time that it took is on record.
    pub accounted: bool,
}

/// An answer as it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnsweredCall {
    /// The request that brought it.
    pub request: RequestId,
    /// The answer.
    pub answer: Answer,
    /// Who answered, for people.
    pub by: Option<String>,
    /// When, by the store's clock.
    pub at: Option<Timestamp>,
}

impl Waiting {
    pub(super) fn is_unstamped(&self) -> bool {
        self.since.is_none() || self.answer.as_ref().is_some_and(|answer| answer.at.is_none())
    }

    pub(super) fn stamp(&mut self, at: Timestamp) {
        self.since.get_or_insert(at);
        if let Some(answer) = &mut self.answer {
            answer.at.get_or_insert(at);
        }
    }

    /// Whether its time is over without an answer, at this moment of the store's clock.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.answer.is_none() && self.on.deadline.is_some_and(|deadline| now > deadline)
    }

    /// How long it waited, if it does not any more at this moment of the store's clock.
    #[must_use]
    pub fn waited(&self, now: Timestamp) -> Option<Duration> {
        let until = match &self.answer {
            Some(answer) => answer.at.unwrap_or(now),
            None if self.is_expired(now) => self.on.deadline?,
            None => return None,
        };
        Some(until.since(self.since?))
    }
}

impl OpenCall {
    /// What is waited for, while nobody has answered and there is no result.
    #[must_use]
    pub fn pending(&self) -> Option<&Arc<PendingCall>> {
        let waiting = self.waiting.as_ref().filter(|it| it.answer.is_none())?;
        self.finish.is_none().then_some(&waiting.on)
    }

    /// The answer of people.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.waiting.as_ref()?.answer.as_ref().map(|it| &it.answer)
    }

    pub(super) fn has_open_patch(&self) -> bool {
        !self.patched && self.finish.as_ref().is_some_and(|finish| !finish.state_patch.is_empty())
    }
}

/// The recorded start of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCall {
    /// The run that started it.
    pub run: RunId,
    /// Which try, from 1.
    pub attempt: u32,
    /// How long it could take.
    pub timeout_ms: Option<u64>,
    /// When, by the store's clock.
    pub at: Option<Timestamp>,
}

/// A request from outside that the current run has not met yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The request.
    pub id: RequestId,
    /// For people.
    pub reason: Option<String>,
}
