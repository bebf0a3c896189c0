//! Pending calls and queued messages in the fold.

use std::sync::Arc;

use super::fold_state::ResolvedCall;
use super::history::HistorySink;
use super::step_record::{AnsweredCall, Waiting};
use super::{RunStatus, Session, SessionOverview};
use crate::clock::Timestamp;
use crate::event::{Answer, PendingCall, Suspension};
use crate::id::{CallId, RequestId};
use crate::llm::reply::StopReason;
use crate::message::Message;
use crate::mutant;
use crate::trace::TraceParent;

/// The source type under which the waiting time of a pending call is recorded, in milliseconds. The
/// source name is the tool's name.
pub const WAIT_USAGE: &str = "client_tool_wait_ms";

impl Session {
    /// Returns `true` if the transcript ends with a reply that its provider paused. Messages wait
    /// until the model has continued it.
    pub(crate) fn ends_with_paused_reply(&self) -> bool {
        let is_last = self.transcript().last().is_some_and(|message| match &**message {
            Message::Assistant(last) => last.tool_calls.is_empty(),
            _ => false,
        });
        let closed = self.history.checkpoint_states.iter().rev().map(|saved| &saved.closed);
        // A failed model call adds no message, so the reply before it is still the last one.
        let last = closed.map(|step| &step.reply).find(|reply| reply.error.is_none());
        let is_paused = last.is_some_and(|reply| {
            reply.message.is_some() && reply.stop_reason == Some(StopReason::Pause)
        });
        is_last && is_paused
    }
}

impl SessionOverview {
    /// Returns the latest known time of the store's clock.
    #[must_use]
    pub fn clock(&self) -> Timestamp {
        self.fold_state.clock
    }

    /// Returns the pending calls without an answer, in call order. Expired calls are included until
    /// a run records their expiry.
    pub fn pending_calls(&self) -> impl Iterator<Item = &Arc<PendingCall>> {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        calls.iter().filter_map(|call| call.pending())
    }

    /// Returns the resolution of a call that is no longer pending.
    #[must_use]
    pub fn settled_call(&self, call: &CallId) -> Option<&ResolvedCall> {
        self.fold_state.rare.settled.get(call)
    }

    /// Returns the messages that wait for the end of the step in progress, or for the continuation of
    /// a paused reply.
    #[must_use]
    pub fn queued_messages(&self) -> &[Arc<super::QueuedMessage>] {
        &self.fold_state.rare.queue
    }

    /// Returns `true` if a message with this request id was queued, even if it has entered the
    /// transcript since.
    #[must_use]
    pub fn knows_message(&self, request: &RequestId) -> bool {
        let waits = self.fold_state.rare.queue.iter().any(|queued| queued.request == *request);
        waits || self.fold_state.rare.taken.contains(request) && !mutant!("message-twice")
    }

    /// Returns the number of pending calls, including one for each child that waits.
    pub(super) fn waiting_calls(&self) -> u32 {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        let waits = |call: &&super::CallRecord| {
            let child = call.child.as_ref().is_some_and(|child| child.waits);
            call.pending().is_some() || (child && call.finish.is_none())
        };
        u32::try_from(calls.iter().filter(waits).count()).unwrap_or(u32::MAX)
    }

    /// Returns the time at which a sweep should check whether the session can continue, if it has
    /// no current run. That is immediately if an answer has arrived. The session's log does not
    /// contain the state of its children, so a session that waits for children is always due.
    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        if self.current_run().is_none()
            && (self.open_children().next().is_some() || self.can_continue_step())
        {
            return Some(self.fold_state.clock);
        }
        self.pending_calls().filter_map(|pending| pending.deadline).min()
    }

    /// Returns `true` if a suspended step can continue because a call has its answer or has
    /// expired.
    #[must_use]
    pub fn can_continue_step(&self) -> bool {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        calls.iter().filter(|call| call.finish.is_none()).any(|call| {
            let waiting = call.waiting.as_deref();
            waiting.is_some_and(|waiting| {
                waiting.answer.is_some() || waiting.is_expired(self.fold_state.clock)
            })
        })
    }

    pub(super) fn take_answer(
        &mut self,
        request: &RequestId,
        call: &CallId,
        answer: &Answer,
        by: Option<&str>,
        trace: Option<TraceParent>,
    ) {
        let (request, answer) = (request.clone(), answer.clone());
        let settled = Arc::make_mut(&mut self.fold_state.rare_mut().settled);
        settled.insert(call.clone(), ResolvedCall::Answered(request.clone()));
        if let Some(waiting) = self.open_call(call).and_then(|state| state.waiting.as_mut()) {
            let by = by.map(str::to_owned);
            Arc::make_mut(waiting).answer =
                Some(AnsweredCall { request, answer, by, trace, at: None });
        }
    }

    /// Records what the open step waits for. A call that is already pending keeps its record.
    pub(super) fn suspend(&mut self, on: &Suspension) -> RunStatus {
        for pending in &on.calls {
            if let Some(state) = self.open_call(&pending.call) {
                state.waiting.get_or_insert_with(|| {
                    let on = Arc::clone(pending);
                    Arc::new(Waiting { on, since: None, answer: None, accounted: false })
                });
            }
        }
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        let consumed = calls.iter().any(|call| call.waiting.is_some() && call.finish.is_some());
        match (on.calls.is_empty(), on.children.is_empty()) {
            (true, _) => RunStatus::SuspendedAwaitingChildren,
            (false, true) if !consumed => RunStatus::SuspendedClientTool,
            (false, _) => RunStatus::SuspendedStepPartial,
        }
    }

    /// Records that a pending call has its result.
    pub(super) fn settle_waiting(&mut self, call: &CallId) {
        let now = self.fold_state.clock;
        let waiting = self.open_call(call).and_then(|state| state.waiting.as_deref());
        let Some(waiting) = waiting.filter(|waiting| waiting.answer.is_none()) else { return };
        let settled =
            if waiting.is_expired(now) { ResolvedCall::Expired } else { ResolvedCall::Dropped };
        Arc::make_mut(&mut self.fold_state.rare_mut().settled).insert(call.clone(), settled);
    }

    pub(super) fn take_queued(&mut self, count: usize, sink: &mut HistorySink<'_>) {
        let count = count.min(self.fold_state.rare.queue.len());
        let taken: Vec<_> = self.fold_state.rare_mut().queue.drain(..count).collect();
        for queued in taken {
            Arc::make_mut(&mut self.fold_state.rare_mut().taken).insert(queued.request.clone());
            self.push_message(sink, || Message::User(queued.message.clone()));
        }
        // The last step no longer ends the turn, because the model has to answer the messages.
        self.fold_state.closed = None;
        self.fold_state.model_failures = 0;
    }
}
