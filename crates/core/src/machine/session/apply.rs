//! The fold: the effect of each event on a session.

use std::sync::Arc;

use super::changes::Change;
use super::fold_state::{FoldState, LastCheckpoint, QueuedMessage, Unpaired};
use super::history::{History, HistorySink};
use super::pending_calls::WAIT_USAGE;
use super::step_record::{CallRecord, ChildCall, StartedCall, StepRecord};
use super::{RunRecord, RunStatus, Session, SessionOverview};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{
    Event, ModelReply, RecordedEvent, RunOutcome, ToolFinish, ToolOutcome, Trigger, decode,
};
use crate::id::{AppendId, CallId, RunId};
use crate::machine::result_message::result_message;
use crate::message::{Message, SharedMessage};
use crate::mutant;
use crate::store::{SessionStatus, StoredAppend};
use crate::trace::TraceParent;
use crate::usage::UsageKind;

impl Session {
    /// Applies the next event of this run. Its append is [acknowledged](Self::acknowledge) once the
    /// store has accepted it.
    ///
    /// # Errors
    /// Returns an error if the event is illegal here. Nothing is changed then.
    pub fn apply(&mut self, event: &Event, run: Option<&RunId>) -> Result<()> {
        self.overview.fold(event, run, false, Some(&mut self.history))
    }

    /// Applies a recorded event.
    ///
    /// # Errors
    /// Returns an error if the event is illegal here, or is not the next one of the log. Nothing is
    /// changed then.
    pub fn apply_recorded(&mut self, recorded: &RecordedEvent) -> Result<()> {
        self.overview.fold_recorded(recorded, Some(&mut self.history))
    }

    /// Advances the known time of the store's clock. Calls whose deadline has passed count as
    /// expired.
    pub fn observe(&mut self, now: Timestamp) {
        self.overview.observe(now);
    }

    /// Applies one append of the log.
    ///
    /// # Errors
    /// Returns an error if the append cannot be read, or is illegal here.
    pub fn apply_append(&mut self, append: &StoredAppend) -> Result<()> {
        for recorded in decode(self.id(), append)? {
            self.apply_recorded(&recorded)?;
        }
        self.end_append(append.id.clone());
        Ok(())
    }

    /// Records that the store accepted the events applied since the last append, as this append.
    pub fn acknowledge(&mut self, append: AppendId, at: Timestamp) {
        self.end_append(append);
        self.observe(at);
        self.overview.stamp(at);
        self.history.stamp(at);
    }

    fn end_append(&mut self, append: AppendId) {
        self.overview.end_append(append);
        self.history.cuts.clear();
    }
}

impl SessionOverview {
    /// Applies the next event, if that is possible without the history.
    ///
    /// # Errors
    /// Returns an error if the event is illegal here, or needs the history as [`Event::Rewound`]
    /// does. Nothing is changed then.
    pub fn apply(&mut self, event: &Event, run: Option<&RunId>) -> Result<()> {
        self.fold(event, run, false, None)
    }

    /// Advances the known time of the store's clock. Calls whose deadline has passed count as
    /// expired.
    pub fn observe(&mut self, now: Timestamp) {
        self.fold_state.clock = self.fold_state.clock.max(now);
    }

    /// Applies one append of the log, if that is possible without the history.
    ///
    /// # Errors
    /// Returns an error if the append cannot be read, or is illegal here. The overview must be
    /// discarded then.
    pub fn apply_append(&mut self, append: &StoredAppend) -> Result<FoldOutcome> {
        let events = decode(&self.id, append)?;
        if events.iter().any(|recorded| takes_history(&recorded.event)) {
            return Ok(FoldOutcome::NeedsHistory);
        }
        for recorded in events {
            self.fold_recorded(&recorded, None)?;
        }
        self.end_append(append.id.clone());
        Ok(FoldOutcome::Done)
    }

    fn fold_recorded(
        &mut self,
        recorded: &RecordedEvent,
        mut history: Option<&mut History>,
    ) -> Result<()> {
        if recorded.seq != self.fold_state.position.version + 1 {
            return Err(Error::new(ErrorCode::LogInvalid, "the log has a gap")
                .with_context("session", &self.id)
                .with_context("expected", self.fold_state.position.version + 1)
                .with_context("found", recorded.seq));
        }
        self.observe(recorded.at);
        let (event, run) = (&recorded.event, recorded.run.as_ref());
        if matches!(event, Event::RunStarted { trigger: Trigger::Resume, .. }) {
            self.observe_passed_deadline();
        }
        self.fold(event, run, recorded.schema == 0, history.as_deref_mut())?;
        self.stamp(recorded.at);
        // The time until an inferred deadline does not count as wall time.
        self.fold_state.seen = self.fold_state.seen.map(|seen| seen.max(self.fold_state.clock));
        if let Some(history) = history {
            history.stamp(recorded.at);
        }
        Ok(())
    }

    /// Infers from a resumption without another reason that a deadline has passed. The store's
    /// clock may have gone back after the resuming process read it and before its append.
    fn observe_passed_deadline(&mut self) {
        if !self.is_waiting_for_answers() {
            return;
        }
        let deadline = self.pending_calls().filter_map(|pending| pending.deadline).min();
        if let Some(deadline) = deadline {
            self.observe(Timestamp(deadline.0.saturating_add(1)));
        }
    }

    fn end_append(&mut self, append: AppendId) {
        let FoldState { position, last_append, .. } = &mut self.fold_state;
        position.append = append;
        *last_append = last_append.end..position.version;
    }

    /// Checks an event and applies it, with or without the history.
    fn fold(
        &mut self,
        event: &Event,
        run: Option<&RunId>,
        legacy: bool,
        history: Option<&mut History>,
    ) -> Result<()> {
        self.check_with(event, run, legacy, history.as_deref())?;
        self.fold_state.position.version += 1;
        self.note_late(event, run);
        self.take(event, run, &mut HistorySink(history));
        Ok(())
    }

    /// Keeps late results of earlier runs until the current run appends, because the stream may not
    /// show them before.
    fn note_late(&mut self, event: &Event, run: Option<&RunId>) {
        let fold_state = &mut self.fold_state;
        match (&fold_state.run, run) {
            (Some(current), Some(run)) if current.id == *run => fold_state.clear_late(),
            (Some(_), Some(_)) => {
                if let Event::ToolFinished(finish) = event
                    && finish.attempts > 0
                {
                    let version = fold_state.position.version;
                    fold_state.rare_mut().late.push((version, Arc::clone(finish)));
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, event: &Event, run: Option<&RunId>, sink: &mut HistorySink<'_>) {
        match event {
            Event::SessionCreated { agent, tags, state, parent } => {
                self.parent = parent.clone().map(Arc::new);
                self.agent = Arc::clone(agent);
                self.tags = Arc::new(tags.clone());
                self.fold_state.state = Arc::new(state.to_value());
                sink.add(|history| history.changes.reset(&self.fold_state.state));
            }
            Event::RunStarted {
                run, trigger, runtime, stream_from, budget, clears, trace, ..
            } => {
                if let Some(budget) = budget {
                    let budget = Arc::new(budget.or(*self.recorded_budget()));
                    self.fold_state.rare_mut().budget = Some(budget);
                }
                self.fold_state.seen = None;
                if let Some(request) = clears {
                    self.fold_state.clear_interrupt(request);
                }
                self.start_run(run, *trigger, runtime, *stream_from, *trace, sink);
            }
            Event::RunEnded { outcome } => self.end_run(outcome),
            Event::UserMessages { messages } => {
                self.begin_turn();
                for message in messages {
                    self.push_message(sink, || Message::User(message.clone()));
                }
            }
            Event::ModelReplied(reply) => self.take_reply(reply, run, sink),
            Event::CorrectionSent { message, .. } => {
                self.fold_state.corrections += 1;
                if let Some(step) = &mut self.fold_state.step {
                    step.correction = Some(message.clone());
                }
            }
            Event::HistoryHealed { results } => self.heal(results, sink),
            Event::ToolStarted { call, attempt, timeout_ms } => {
                let started = run.map(|run| StartedCall {
                    run: run.clone(),
                    attempt: *attempt,
                    timeout_ms: *timeout_ms,
                    at: None,
                });
                if let Some(state) = self.open_call(call) {
                    state.started = started;
                }
            }
            Event::WorkItemRepeated { call: None } => self.fold_state.count_takeover(),
            Event::WorkItemRepeated { call: Some(call) } => {
                if let Some(state) = self.open_call(call) {
                    state.repeats += 1;
                }
            }
            Event::ChildStarted(start) => {
                self.keep_companion(start);
                let child = ChildCall { start: Arc::clone(start), waits: false, at: None };
                if let Some(state) = self.open_call(&start.call) {
                    state.child = Some(child);
                }
            }
            Event::ChildWaiting { call } => {
                if let Some(child) = self.open_call(call).and_then(|state| state.child.as_mut()) {
                    child.waits = true;
                }
            }
            Event::ToolFinished(finish) => self.take_finish(finish, run, sink),
            Event::InterruptRequested { request, reason, .. } => {
                let request = self.fold_state.record_request(request, reason.as_deref());
                self.fold_state.rare_mut().interrupt = Some(request);
            }
            Event::AbortRequested { request, reason, .. } => {
                let request = self.fold_state.record_request(request, reason.as_deref());
                self.fold_state.rare_mut().abort = Some(request);
            }
            Event::Submitted { request, call, answer, by, trace } => {
                self.take_answer(request, call, answer, by.as_deref(), *trace);
            }
            Event::MessageQueued { request, message, from, .. } => {
                if let Some(notice) = from {
                    self.take_notice(notice, run, sink);
                }
                let (request, message) = (request.clone(), message.clone());
                let queued = Arc::new(QueuedMessage { request, message });
                self.fold_state.rare_mut().queue.push(queued);
            }
            Event::MessagesTaken { requests } => self.take_queued(requests.len(), sink),
            Event::StateChanged { patch, .. } => {
                // The hook saw the tools' state changes, so those are applied first.
                self.apply_patches_in_call_order(sink);
                patch.apply(Arc::make_mut(&mut self.fold_state.state));
                sink.add(|history| {
                    history.changed(Change::Other(Arc::new(patch.clone())), &self.fold_state);
                });
            }
            Event::UsageRecorded { source_type, source_name, amount, call, success } => {
                if let Some(state) = call.as_ref().and_then(|call| self.open_call(call))
                    && source_type == WAIT_USAGE
                    && let Some(waiting) = &mut state.waiting
                {
                    Arc::make_mut(waiting).accounted = true;
                }
                let kind = UsageKind::Custom {
                    source_type: source_type.as_str().into(),
                    source_name: source_name.as_str().into(),
                    amount: *amount,
                    call: call.clone(),
                    success: *success,
                };
                self.use_up(kind, false, run, sink);
            }
            Event::StepClosed { .. } => self.close_step(sink),
            Event::Forked { from, at, tags } => self.take_fork(from, *at, tags, sink),
            Event::Rewound { to } => self.rewind(*to, sink),
        }
    }

    fn start_run(
        &mut self,
        id: &RunId,
        trigger: Trigger,
        runtime: &Arc<str>,
        stream_from: u64,
        trace: Option<TraceParent>,
        sink: &mut HistorySink<'_>,
    ) {
        let fold_state = &mut self.fold_state;
        fold_state.next_fencing_token();
        let begins_turn = matches!(trigger, Trigger::Execute | Trigger::Continue);
        let mut turn_continues = false;
        if let Some(mut past) = fold_state.run.take() {
            if past.status == RunStatus::Running {
                if mutant!("interrupt-dropped") {
                    fold_state.rare_mut().interrupt = None;
                }
                if mutant!("abort-dropped") {
                    fold_state.rare_mut().abort = None;
                }
                past.status = RunStatus::Superseded;
                fold_state.count_takeover();
                // The superseded run may have started calls that are still open.
                if let Some(step) = &mut fold_state.step {
                    step.runs += 1;
                }
            } else {
                fold_state.takeovers = 0;
                let calls = fold_state.step.iter_mut().flat_map(|step| &mut step.calls);
                calls.for_each(|call| call.repeats = 0);
            }
            turn_continues = !begins_turn && (fold_state.rewound || past.status.leaves_turn_open());
            fold_state.past_runs += 1;
            sink.add(|history| history.past_runs.push(past));
        }
        if !turn_continues {
            // The run that ended has handled the last step's effect on the turn.
            fold_state.closed = None;
            fold_state.turn_steps = 0;
            fold_state.corrections = 0;
            fold_state.model_failures = 0;
        }
        // The new run has to find out whether children still wait.
        let calls = fold_state.step.iter_mut().flat_map(|step| &mut step.calls);
        for child in calls.filter_map(|call| call.child.as_mut()) {
            child.waits = false;
        }
        fold_state.rewound = false;
        // The run brings its stream into line with all earlier events.
        fold_state.clear_late();
        fold_state.status = SessionStatus::Active;
        fold_state.run = Some(RunRecord {
            id: id.clone(),
            turn: fold_state.turn + u32::from(begins_turn),
            trigger,
            version: fold_state.position.version,
            fencing_token: fold_state.fencing_token,
            runtime: Arc::clone(runtime),
            status: RunStatus::Running,
            steps: 0,
            started: None,
            ended: None,
            stream_from,
            output: None,
            error: None,
            reason: None,
            suspended: None,
            trace,
        });
    }

    fn end_run(&mut self, outcome: &RunOutcome) {
        let (run_status, status) = match outcome {
            RunOutcome::Suspended { on } => (self.suspend(on), SessionStatus::Active),
            RunOutcome::Completed { .. } => (RunStatus::Completed, SessionStatus::Completed),
            RunOutcome::Failed { .. } => (RunStatus::Failed, SessionStatus::Failed),
            RunOutcome::Interrupted { .. } => (RunStatus::Interrupted, SessionStatus::Interrupted),
            RunOutcome::Aborted { .. } => (RunStatus::Aborted, SessionStatus::Aborted),
        };
        self.fold_state.status = status;
        // The turn of a suspended run stays open, and so do its requests.
        if !run_status.is_suspended() {
            self.fold_state.settle_requests(run_status);
        }
        if let Some(run) = &mut self.fold_state.run {
            run.status = run_status;
            match outcome {
                RunOutcome::Completed { output } => run.output.clone_from(output),
                RunOutcome::Failed { error } => run.error = Some(error.clone()),
                RunOutcome::Interrupted { reason } | RunOutcome::Aborted { reason } => {
                    run.reason.clone_from(reason);
                }
                RunOutcome::Suspended { on } => run.suspended = Some(Arc::clone(on)),
            }
        }
    }

    fn begin_turn(&mut self) {
        let fold_state = &mut self.fold_state;
        fold_state.turn += 1;
        fold_state.turn_steps = 0;
        fold_state.corrections = 0;
        fold_state.model_failures = 0;
        fold_state.takeovers = 0;
        fold_state.closed = None;
        if let Some(run) = &mut fold_state.run {
            run.turn = fold_state.turn;
            let trace = run.trace;
            fold_state.set_trace(trace);
        }
    }

    fn take_reply(
        &mut self,
        reply: &Arc<ModelReply>,
        run: Option<&RunId>,
        sink: &mut HistorySink<'_>,
    ) {
        let fold_state = &mut self.fold_state;
        fold_state.last_step = reply.step;
        fold_state.takeovers = 0;
        fold_state.turn_steps += 1;
        fold_state.closed = None;
        if reply.error.is_some() {
            fold_state.model_failures += 1;
        } else {
            fold_state.model_failures = 0;
        }
        let calls = reply.message.as_deref().map_or(0, |message| message.tool_calls.len());
        if let Some(message) = &reply.message {
            self.push_message(sink, || Message::Assistant(Arc::clone(message)));
        }
        self.fold_state.step = Some(StepRecord {
            reply: Arc::clone(reply),
            calls: vec![CallRecord::default(); calls],
            correction: None,
            runs: 1,
        });
        self.spend_reply(reply, run, sink);
    }

    fn take_finish(
        &mut self,
        finish: &Arc<ToolFinish>,
        run: Option<&RunId>,
        sink: &mut HistorySink<'_>,
    ) {
        if finish.attempts > 0 {
            self.fold_state.takeovers = 0;
        }
        self.spend_call(finish, run, sink);
        self.settle_waiting(&finish.call);
        if let Some(state) = self.open_call(&finish.call) {
            state.finish = Some(Arc::clone(finish));
        }
    }

    pub(super) fn open_call(&mut self, id: &CallId) -> Option<&mut CallRecord> {
        let step = self.fold_state.step.as_mut()?;
        let index = step.tool_calls().iter().position(|call| call.id == *id)?;
        step.calls.get_mut(index)
    }

    /// Closes the open step. Results enter the transcript in call order, regardless of the order in
    /// which the calls ended.
    fn close_step(&mut self, sink: &mut HistorySink<'_>) {
        self.apply_patches_in_call_order(sink);
        let Some(step) = self.fold_state.step.take() else {
            return;
        };
        let mut unpaired = Vec::new();
        for (call, state) in step.pairs() {
            let Some(finish) = &state.finish else {
                unpaired.push(call.clone());
                continue;
            };
            self.push_message(sink, || {
                let mut message = result_message(call, &finish.outcome);
                message.attachments.clone_from(&finish.attachments);
                Message::Tool(message)
            });
        }
        // A healed result is inserted right after the other results of the message that made the
        // call.
        let insert_at = self.fold_state.messages;
        if !unpaired.is_empty() {
            let unpaired = unpaired.into_iter().map(|call| Unpaired { call, insert_at });
            self.fold_state.rare_mut().unpaired.extend(unpaired);
        }
        if let Some(correction) = &step.correction {
            self.push_message(sink, || Message::User(correction.clone()));
        }
        if let Some(run) = &mut self.fold_state.run {
            run.steps += 1;
        }
        let version = self.fold_state.position.version;
        self.fold_state.checkpoint = Some(LastCheckpoint { version, at: None });
        let closed = Arc::new(step);
        sink.add(|history| history.close_step(&self.fold_state, &closed));
        self.fold_state.closed = Some(closed);
    }

    fn heal(&mut self, results: &[(CallId, ToolOutcome)], sink: &mut HistorySink<'_>) {
        let unpaired = std::mem::take(&mut self.fold_state.rare_mut().unpaired);
        sink.add(|history| history.shift_checkpoints(&unpaired));
        for (shift, open) in unpaired.into_iter().enumerate() {
            let outcome = results.iter().find(|(id, _)| *id == open.call.id);
            let Some((_, outcome)) = outcome else {
                continue;
            };
            self.fold_state.messages += 1;
            sink.add(|history| {
                let message = Message::Tool(result_message(&open.call, outcome));
                let at = open.insert_at + shift;
                let before = at.checked_sub(1).and_then(|before| history.transcript.get(before));
                let turn = before.map_or(0, SharedMessage::turn);
                history.transcript.insert(at, SharedMessage::of_turn(turn, message));
            });
        }
    }

    /// Adds a message to the transcript.
    pub(super) fn push_message(
        &mut self,
        sink: &mut HistorySink<'_>,
        message: impl FnOnce() -> Message,
    ) {
        self.fold_state.messages += 1;
        let turn = self.fold_state.turn;
        sink.add(|history| history.transcript.push(SharedMessage::of_turn(turn, message())));
    }

    /// Fills in the time of events that were applied before the store's response provided it.
    fn stamp(&mut self, at: Timestamp) {
        let running = self.current_run().is_some();
        self.fold_state.count_time(at, running);
        self.fold_state.date_fencing_token(at);
        self.fold_state.created_at.get_or_insert(at);
        let fencing_token = self.fold_state.fencing_token;
        if let Some(run) = &mut self.fold_state.run {
            if run.started.is_none() {
                run.fencing_token = fencing_token;
            }
            run.started.get_or_insert(at);
            if run.status != RunStatus::Running {
                run.ended.get_or_insert(at);
            }
        }
        if let Some(checkpoint) = &mut self.fold_state.checkpoint {
            checkpoint.at.get_or_insert(at);
        }
        if let Some(step) = &mut self.fold_state.step {
            for child in step.calls.iter_mut().filter_map(|call| call.child.as_mut()) {
                child.at.get_or_insert(at);
            }
            for started in step.calls.iter_mut().filter_map(|call| call.started.as_mut()) {
                started.at.get_or_insert(at);
            }
            for waiting in step.calls.iter_mut().filter_map(|call| call.waiting.as_mut()) {
                if waiting.is_unstamped() {
                    Arc::make_mut(waiting).stamp(at);
                }
            }
        }
    }
}

/// The outcome of folding one append into an overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum FoldOutcome {
    /// The append was applied to the overview.
    Done,
    /// The append contains a rewind, which needs the whole session. Nothing was changed.
    NeedsHistory,
}

/// Returns `true` if an event cannot be folded without the history.
pub(super) const fn takes_history(event: &Event) -> bool {
    matches!(event, Event::Rewound { .. })
}
