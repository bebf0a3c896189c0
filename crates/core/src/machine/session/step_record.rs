//! The record of a step: the model's reply and what is known about each of its calls. It also
//! determines the order in which the state changes of concurrent calls apply.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::event::{Answer, ChildStart, ModelReply, PendingCall, ToolFinish};
use crate::id::{CallId, RequestId, RunId};
use crate::json::Json;
use crate::message::{ToolCall, UserMessage};
use crate::state::Patch;
use crate::trace::TraceParent;

/// A step whose reply is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepRecord {
    /// The model's reply.
    pub reply: Arc<ModelReply>,
    /// The records of the reply's tool calls, in call order.
    pub calls: Vec<CallRecord>,
    /// The correction that was sent to the model about its answer.
    pub correction: Option<UserMessage>,
    /// The number of runs that have worked on the step, including the current one.
    pub runs: u32,
}

impl StepRecord {
    /// Returns the calls without a result that a run works on itself. They wait neither for a child
    /// nor for a submission.
    pub fn in_progress(&self) -> impl Iterator<Item = &ToolCall> {
        let own = |state: &CallRecord| {
            state.finish.is_none() && state.child.is_none() && state.pending().is_none()
        };
        self.pairs().filter(move |(_, state)| own(state)).map(|(call, _)| call)
    }

    /// Returns `true` if a run of this step only waits: some calls are open, and each of them waits
    /// for a child or a submission.
    pub(super) fn only_waits(&self) -> bool {
        let open = self.calls.iter().any(|call| call.finish.is_none());
        open && self.in_progress().next().is_none()
    }

    /// Returns a call as the model made it.
    #[must_use]
    pub fn tool_call(&self, id: &CallId) -> Option<&ToolCall> {
        self.tool_calls().iter().find(|call| call.id == *id)
    }

    /// Returns all calls as the model made them.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.reply.message.as_deref().map_or(&[], |message| &message.tool_calls)
    }

    /// Returns the calls with their records, in call order.
    pub fn pairs(&self) -> impl Iterator<Item = (&ToolCall, &CallRecord)> {
        self.tool_calls().iter().zip(&self.calls)
    }

    /// Returns the results whose state changes are not part of the session's state yet, in the
    /// order in which they apply.
    pub(super) fn open_changes(&self) -> impl Iterator<Item = &Arc<ToolFinish>> {
        let open = || self.calls.iter().filter(|call| call.has_open_patch());
        let finishes = move |finish: bool| {
            open()
                .filter_map(|call| call.finish.as_ref())
                .filter(move |result| result.finish.is_some() == finish)
        };
        finishes(false).chain(finishes(true))
    }

    /// Returns the state changes that are not part of the session's state yet, in the order in
    /// which they apply.
    pub(crate) fn open_patches(&self) -> impl Iterator<Item = &Patch> {
        self.open_changes().map(|result| &result.state_patch)
    }

    /// Applies the state changes that are not part of the session's state yet.
    pub(super) fn apply_open_patches(&self, state: &mut Value) {
        self.open_patches().for_each(|patch| patch.apply(state));
    }

    /// Returns the arguments that a call runs with: the model's, unless the approver edited them.
    #[must_use]
    pub fn input(&self, id: &CallId) -> Option<Json> {
        let (call, state) = self.pairs().find(|(call, _)| call.id == *id)?;
        match state.answer() {
            Some(Answer::Approved { edited: Some(edited) }) => Some(edited.clone()),
            _ => call.arguments.as_json().cloned(),
        }
    }

    /// Returns the record of a call.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<&CallRecord> {
        self.pairs().find(|(call, _)| call.id == *id).map(|(_, state)| state)
    }
}

/// The record of one call of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The call's start, if its effect class requires that starts are recorded.
    pub started: Option<StartedCall>,
    /// The call's result.
    pub finish: Option<Arc<ToolFinish>>,
    /// Whether the result's state change is already part of the session's state.
    pub patched: bool,
    /// The wait of the call, if it is or was a pending call.
    pub waiting: Option<Arc<Waiting>>,
    /// The child that the call started.
    pub child: Option<ChildCall>,
    /// The number of retries by the engine within a run, made because the previous attempt left no
    /// outcome.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The child of a sub-agent call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildCall {
    /// The event that started the child.
    pub start: Arc<ChildStart>,
    /// Whether the current run has found that the child waits.
    pub waits: bool,
    /// The time when the start was recorded, by the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The wait of a call that is or was pending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Waiting {
    /// The pending call.
    pub on: Arc<PendingCall>,
    /// The time since when the call waits, by the store's clock.
    pub since: Option<Timestamp>,
    /// The answer, once it was submitted.
    pub answer: Option<AnsweredCall>,
    /// Whether the waiting time is recorded in the log.
    pub accounted: bool,
}

/// A recorded answer to a pending call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnsweredCall {
    /// The id of the request that submitted the answer.
    pub request: RequestId,
    /// The answer itself.
    pub answer: Answer,
    /// The name of the user who answered, for display.
    pub by: Option<String>,
    /// The trace of the caller that submitted the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// The time of the answer, by the store's clock.
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

    /// Returns `true` if the deadline passed without an answer, at time `now` of the store's clock.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.answer.is_none() && self.on.deadline.is_some_and(|deadline| now > deadline)
    }

    /// Returns how long the call waited, or `None` if it still waits at time `now` of the store's
    /// clock.
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

impl CallRecord {
    /// Returns the pending call, as long as it has neither an answer nor a result.
    #[must_use]
    pub fn pending(&self) -> Option<&Arc<PendingCall>> {
        let waiting = self.waiting.as_ref().filter(|waiting| waiting.answer.is_none())?;
        self.finish.is_none().then_some(&waiting.on)
    }

    /// Returns the submitted answer.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.waiting.as_ref()?.answer.as_ref().map(|answered| &answered.answer)
    }

    pub(super) fn has_open_patch(&self) -> bool {
        !self.patched && self.finish.as_ref().is_some_and(|finish| !finish.state_patch.is_empty())
    }
}

/// The recorded start of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StartedCall {
    /// The run that started the call.
    pub run: RunId,
    /// The number of the attempt, starting at 1.
    pub attempt: u32,
    /// The timeout of the attempt, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The time of the start, by the store's clock.
    pub at: Option<Timestamp>,
}
