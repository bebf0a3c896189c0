//! What the fold makes of calls that wait for people, and of messages that wait for a step's end.

use std::sync::Arc;

use super::fold_state::{AnsweredCall, ResolvedCall, Waiting};
use super::history::Notes;
use super::{RunStatus, Session, SessionOverview};
use crate::clock::Timestamp;
use crate::event::{Answer, Event, PendingCall, RunOutcome, Suspension};
use crate::id::{CallId, RequestId};
use crate::message::Message;
use crate::mutant;

/// The source type under which the time is recorded that a call waited for people, in
/// milliseconds. The source name is the tool's.
pub const WAIT_USAGE: &str = "client_tool_wait_ms";

/// Says in the program's log what an append means for calls that wait for people; for runtimes.
pub fn report_waiting(session: &Session, events: &[Event]) {
    let id = session.id();
    for event in events {
        match event {
            Event::RunEnded { outcome: RunOutcome::Suspended { on } } => {
                for pending in on.news() {
                    let (call, tool) = (&pending.call, &pending.tool);
                    tracing::info!(session = %id, %call, %tool, "client_tool.suspended");
                }
            }
            Event::ToolFinished(finish) => match session.settled_call(&finish.call) {
                Some(ResolvedCall::Expired) => {
                    tracing::warn!(session = %id, call = %finish.call, "client_tool.timeout");
                }
                Some(ResolvedCall::Dropped) => {
                    tracing::info!(session = %id, call = %finish.call, "client_tool.aborted");
                }
                Some(ResolvedCall::Answered(_)) | None => {}
            },
            _ => {}
        }
    }
}

impl SessionOverview {
    /// The store's clock, as far as it is known.
    #[must_use]
    pub fn clock(&self) -> Timestamp {
        self.fold_state.clock
    }

    /// The calls that wait for people and have no answer, in call order. Those whose time is over
    /// are among them until a run has taken note of it.
    pub fn pending_calls(&self) -> impl Iterator<Item = &Arc<PendingCall>> {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        calls.iter().filter_map(|call| call.pending())
    }

    /// What became of a call that waited for people and does not any more.
    #[must_use]
    pub fn settled_call(&self, call: &CallId) -> Option<&ResolvedCall> {
        self.fold_state.settled.get(call)
    }

    /// Messages that wait for the end of the step under way.
    #[must_use]
    pub fn queued_messages(&self) -> &[Arc<super::QueuedMessage>] {
        &self.fold_state.queue
    }

    /// Whether a message of this request was queued, taken or not.
    #[must_use]
    pub fn knows_message(&self, request: &RequestId) -> bool {
        let waits = self.fold_state.queue.iter().any(|queued| queued.request == *request);
        waits || self.fold_state.taken.contains(request) && !mutant!("message-twice")
    }

    /// How many calls wait for people, here or below.
    pub(super) fn waiting_calls(&self) -> u32 {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        let waits = |call: &&super::OpenCall| {
            let child = call.child.as_ref().is_some_and(|child| child.waits);
            call.pending().is_some() || (child && call.finish.is_none())
        };
        u32::try_from(calls.iter().filter(waits).count()).unwrap_or(u32::MAX)
    }

    /// When somebody should look whether the session can go on, if nobody works on it: at once if
    /// an answer has come. What becomes of children does not stand in its log, so one that waits for
    /// them is looked at each time.
    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        if self.current_run().is_none()
            && (self.open_children().next().is_some() || self.has_news())
        {
            return Some(self.fold_state.clock);
        }
        self.pending_calls().filter_map(|pending| pending.deadline).min()
    }

    /// Whether a suspended step can go on: a call has its answer, or its time is over.
    #[must_use]
    pub fn has_news(&self) -> bool {
        let calls = self.open_step().map_or(&[][..], |step| &step.calls);
        calls.iter().filter(|call| call.finish.is_none()).any(|call| {
            let waiting = call.waiting.as_deref();
            waiting.is_some_and(|it| it.answer.is_some() || it.is_expired(self.fold_state.clock))
        })
    }

    pub(super) fn take_answer(
        &mut self,
        request: &RequestId,
        call: &CallId,
        answer: &Answer,
        by: Option<&str>,
    ) {
        let (request, answer) = (request.clone(), answer.clone());
        let settled = Arc::make_mut(&mut self.fold_state.settled);
        settled.insert(call.clone(), ResolvedCall::Answered(request.clone()));
        if let Some(waiting) = self.open_call(call).and_then(|state| state.waiting.as_mut()) {
            let by = by.map(str::to_owned);
            Arc::make_mut(waiting).answer = Some(AnsweredCall { request, answer, by, at: None });
        }
    }

    /// Notes what the open step waits for; a call that waited before waits on as it was.
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

    /// Notes that a call that waited for people has its result.
    pub(super) fn settle_waiting(&mut self, call: &CallId) {
        let now = self.fold_state.clock;
        let waiting = self.open_call(call).and_then(|state| state.waiting.as_deref());
        let Some(waiting) = waiting.filter(|it| it.answer.is_none()) else { return };
        let settled =
            if waiting.is_expired(now) { ResolvedCall::Expired } else { ResolvedCall::Dropped };
        Arc::make_mut(&mut self.fold_state.settled).insert(call.clone(), settled);
    }

    pub(super) fn take_queued(&mut self, count: usize, notes: &mut Notes<'_>) {
        let count = count.min(self.fold_state.queue.len());
        let taken: Vec<_> = self.fold_state.queue.drain(..count).collect();
        for queued in taken {
            Arc::make_mut(&mut self.fold_state.taken).insert(queued.request.clone());
            self.say(notes, || Message::User(queued.message.clone()));
        }
        // Whatever the last step meant for the turn, there is something to answer now.
        self.fold_state.closed = None;
        self.fold_state.model_failures = 0;
    }
}
