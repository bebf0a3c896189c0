//! Validation of events: which event may come next. A store never receives an illegal log, because
//! writers apply events to the fold before they append them.

use super::history::History;
use super::{RunStatus, Session, SessionOverview, StepRecord};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Answer, Event, RunOutcome, Suspension, ToolOutcome, Trigger};
use crate::id::{CallId, RunId};
use crate::mutant;
use crate::store::SessionStatus;

impl Session {
    /// Checks whether `event`, written by `run`, may come next.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Superseded`] if another run is current, [`ErrorCode::LogInvalid`]
    /// otherwise, with the reason.
    pub fn check(&self, event: &Event, run: Option<&RunId>, legacy: bool) -> Result<()> {
        self.check_with(event, run, legacy, Some(&self.history))
    }
}

impl SessionOverview {
    /// Checks whether `event`, written by `run`, may come next. Without the history, this accepts
    /// events that only the ids of earlier runs could rule out, because the writer had the history
    /// and checked it.
    pub(super) fn check_with(
        &self,
        event: &Event,
        run: Option<&RunId>,
        legacy: bool,
        history: Option<&History>,
    ) -> Result<()> {
        if self.fold_state.position.version == 0 && !matches!(event, Event::SessionCreated { .. }) {
            return Err(self.illegal(event, "the first event must be `session_created`"));
        }
        if self.needs_heal() && !matches!(event, Event::HistoryHealed { .. }) && !legacy {
            return Err(self.illegal(event, "calls without a result have to be healed first"));
        }
        match event {
            Event::SessionCreated { .. } if self.fold_state.position.version > 0 => {
                Err(self.illegal(event, "the session exists"))
            }
            Event::SessionCreated { .. } => Ok(()),
            Event::RunStarted { run: new, after, trigger, .. } => {
                self.check_run_started(event, new, after.as_ref(), *trigger, history)
            }
            Event::InterruptRequested { run, request, .. } => self.check_request(
                event,
                run,
                self.fold_state.rare.interrupt.as_ref().map(|request| &request.id) == Some(request),
            ),
            Event::AbortRequested { run, request, .. } => self.check_request(
                event,
                run,
                self.fold_state.rare.abort.as_ref().map(|request| &request.id) == Some(request),
            ),
            Event::Submitted { call, answer, .. } => self.check_submitted(event, call, answer),
            Event::MessageQueued { request, .. } => {
                if self.knows_message(request) {
                    return Err(self.illegal(event, "it is known already"));
                }
                Ok(())
            }
            Event::HistoryHealed { results } => self.check_heal(event, results),
            Event::ToolFinished(finish) => self.check_finish(event, &finish.call, run, history),
            Event::Forked { from, at, .. } => self.check_forked(event, from, *at),
            Event::Rewound { to } => self.check_rewound(event, *to, run, history),
            _ => {
                self.check_owner(event, run)?;
                self.check_in_run(event, legacy)
            }
        }
    }

    fn check_in_run(&self, event: &Event, legacy: bool) -> Result<()> {
        let step = self.fold_state.step.as_ref();
        let problem = match event {
            Event::UserMessages { messages } if messages.is_empty() => "there is no message",
            Event::UserMessages { .. } if step.is_some() => "no message may enter an open step",
            Event::ModelReplied(_) if step.is_some() => "the step before it is open",
            Event::ModelReplied(reply) if reply.step != self.fold_state.last_step + 1 => {
                "it is not the next step"
            }
            Event::ModelReplied(_) if self.fold_state.turn == 0 => "no turn has started",
            Event::CorrectionSent { step: number, .. } => match step {
                Some(step) if step.reply.step == *number && step.correction.is_none() => {
                    return Ok(());
                }
                _ => "there is no such open step without a correction",
            },
            Event::ToolStarted { call, .. } | Event::WorkItemRepeated { call: Some(call) } => {
                match step.and_then(|step| step.call(call)) {
                    Some(call) if call.finish.is_none() => return Ok(()),
                    _ => "there is no such open call",
                }
            }
            Event::ChildStarted(start) => match step.and_then(|step| step.call(&start.call)) {
                Some(call) if call.finish.is_none() && call.child.is_none() => return Ok(()),
                _ => "there is no such open call without a child",
            },
            Event::ChildWaiting { call } => match step.and_then(|step| step.call(call)) {
                Some(call) if call.finish.is_none() && call.child.is_some() => return Ok(()),
                _ => "there is no such open call with a child",
            },
            Event::StepClosed { step: number } => match step {
                Some(step) if step.reply.step != *number => "another step is open",
                Some(step) if !legacy && step.calls.iter().any(|call| call.finish.is_none()) => {
                    "a call of it has no result"
                }
                Some(_) => return Ok(()),
                None => "no step is open",
            },
            // JSON cannot represent it, so the log could not be read again.
            Event::UsageRecorded { amount, .. } if !amount.is_finite() => {
                "the amount is not a finite number"
            }
            Event::RunEnded { outcome: RunOutcome::Suspended { on } } => match step {
                None => "no step is open",
                Some(step) if !legacy && !waits(step, on) => {
                    "the run waits for no open call of the step"
                }
                Some(_) => return Ok(()),
            },
            Event::RunEnded { outcome: RunOutcome::Interrupted { .. } }
                if step.is_some_and(is_at_rest) =>
            {
                return Ok(());
            }
            Event::RunEnded { .. } if step.is_some() => "a step is open",
            Event::MessagesTaken { .. } if step.is_some() => "no message may enter an open step",
            Event::MessagesTaken { requests } => {
                let queue = self.fold_state.rare.queue.iter().map(|queued| &queued.request);
                if !requests.is_empty() && queue.take(requests.len()).eq(requests) {
                    return Ok(());
                }
                "these are not the next messages"
            }
            Event::RunEnded { outcome: RunOutcome::Completed { .. } }
                if self.fold_state.closed.is_none() =>
            {
                "no closed step completed the turn"
            }
            _ => return Ok(()),
        };
        Err(self.illegal(event, problem))
    }

    fn check_run_started(
        &self,
        event: &Event,
        new: &RunId,
        after: Option<&RunId>,
        trigger: Trigger,
        history: Option<&History>,
    ) -> Result<()> {
        let last = self.fold_state.run.as_ref();
        if last.map(|run| &run.id) != after {
            return Err(Error::new(ErrorCode::Superseded, "another run has started meanwhile")
                .with_context("session", &self.id));
        }
        let unended = last.is_some_and(|run| run.status == RunStatus::Running);
        let rested = matches!(
            self.fold_state.status,
            SessionStatus::Completed
                | SessionStatus::Failed
                | SessionStatus::Interrupted
                | SessionStatus::Aborted
        );
        let resumable = self.fold_state.rewound
            || matches!(self.fold_state.status, SessionStatus::Failed | SessionStatus::Interrupted);
        if trigger == Trigger::Resume && self.is_waiting_for_answers() {
            return Err(self.illegal(event, "nothing that it waits for has arrived"));
        }
        let fits = match trigger {
            Trigger::Execute => last.is_none(),
            Trigger::Continue => rested && self.fold_state.step.is_none(),
            Trigger::Resume => resumable || self.is_suspended(),
            Trigger::Recover => unended,
            Trigger::Abort => last.is_some(),
        };
        if !fits {
            return Err(self.illegal(event, "a run cannot start for this reason now"));
        }
        if last.is_some_and(|run| run.id == *new)
            || history.is_some_and(|history| history.has_run(new))
        {
            return Err(self.illegal(event, "a run has this id already"));
        }
        Ok(())
    }

    fn is_suspended(&self) -> bool {
        let is_last = self.fold_state.run.as_ref().is_some_and(|run| run.status.is_suspended());
        is_last && !self.fold_state.rewound
    }

    /// Returns `true` if the last run is suspended and nothing that it waits for has arrived. The
    /// state of children is in their own logs, so this is never the case for a session with open
    /// children.
    pub(super) fn is_waiting_for_answers(&self) -> bool {
        self.is_suspended() && !self.can_continue_step() && self.open_children().next().is_none()
    }

    fn check_request(&self, event: &Event, run: &RunId, known: bool) -> Result<()> {
        match self.current_run() {
            Some(current) if current.id == *run && !known => Ok(()),
            Some(current) if current.id == *run => Err(self.illegal(event, "it is known already")),
            _ => Err(self.illegal(event, "the run has ended: the request is void")),
        }
    }

    fn check_finish(
        &self,
        event: &Event,
        call: &CallId,
        run: Option<&RunId>,
        history: Option<&History>,
    ) -> Result<()> {
        match self.fold_state.step.as_ref().and_then(|step| step.call(call)) {
            None => Err(self.illegal(event, "there is no such call in an open step")),
            Some(state) if state.finish.is_some() => {
                Err(self.illegal(event, "the call has its result already"))
            }
            Some(_) if self.current_run().is_none() => {
                Err(self.illegal(event, "no run is current"))
            }
            Some(_) if self.current_run().map(|current| &current.id) == run => Ok(()),
            // An earlier run may record the actual result of an effect that it started.
            Some(_)
                if run.is_some_and(|run| history.is_none_or(|history| history.has_run(run))) =>
            {
                Ok(())
            }
            Some(_) => Err(self.illegal(event, "it comes from no run of this session")),
        }
    }

    fn check_submitted(&self, event: &Event, call: &CallId, answer: &Answer) -> Result<()> {
        let state = self.fold_state.step.as_ref().and_then(|step| step.call(call));
        match state.and_then(|state| state.pending()) {
            None if mutant!("answered-twice")
                && state.is_some_and(|state| state.waiting.is_some() && state.finish.is_none()) =>
            {
                Ok(())
            }
            None => Err(self.illegal(event, "the call is not pending")),
            Some(pending) if !answer.fits(pending.kind) => {
                Err(self.illegal(event, "the call waits for another kind of answer"))
            }
            Some(_) => Ok(()),
        }
    }

    fn check_heal(&self, event: &Event, healed: &[(CallId, ToolOutcome)]) -> Result<()> {
        let unpaired = &self.fold_state.rare.unpaired;
        let same = healed.len() == unpaired.len()
            && unpaired.iter().all(|open| healed.iter().any(|(id, _)| open.call.id == *id));
        if unpaired.is_empty() || !same {
            return Err(self.illegal(event, "it must answer exactly the calls without a result"));
        }
        Ok(())
    }

    fn check_owner(&self, event: &Event, run: Option<&RunId>) -> Result<()> {
        match (self.current_run(), run) {
            (Some(current), Some(run)) if current.id == *run => Ok(()),
            (Some(_), Some(_)) if mutant!("fence-ignored") => Ok(()),
            (Some(_), Some(run)) => {
                Err(Error::new(ErrorCode::Superseded, "another run owns the session now")
                    .with_context("session", &self.id)
                    .with_context("run", run))
            }
            _ => Err(self.illegal(event, "it belongs to a run, and none is current")),
        }
    }

    pub(super) fn illegal(&self, event: &Event, problem: &'static str) -> Error {
        Error::new(
            ErrorCode::LogInvalid,
            format!("`{}` is not legal here: {problem}", event.name()),
        )
        .with_context("session", &self.id)
        .with_context("version", self.fold_state.position.version)
    }
}

/// Returns `true` if the step can be suspended on this: all of it refers to calls of the step
/// without a result.
fn waits(step: &StepRecord, on: &Suspension) -> bool {
    let open = |call| step.call(call).is_some_and(|state| state.finish.is_none());
    let calls = on.calls.iter().map(|pending| &pending.call);
    let mut all = calls.chain(on.children.iter().map(|child| &child.call)).peekable();
    all.peek().is_some() && all.all(open)
}

/// Returns `true` if some call of the step waits for a submission or a child, so that a run may end
/// before the step is closed.
fn is_at_rest(step: &StepRecord) -> bool {
    let open = step.calls.iter().filter(|call| call.finish.is_none());
    open.clone().any(|call| {
        call.pending().is_some() || call.child.as_ref().is_some_and(|child| child.waits)
    })
}
