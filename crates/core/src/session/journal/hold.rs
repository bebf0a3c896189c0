//! What is staged: in the fold, and not in the log yet.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::Journal;
use super::batch::{Batch, too_large};
use super::fit::{in_place_of, unasked};
use crate::error::Result;
use crate::event::{Event, RunOutcome};
use crate::id::CallId;
use crate::session::{OpenCall, StartedCall, WAIT_USAGE};

/// What becomes of an event that no append carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oversize {
    /// It is an error: a caller handed it in.
    Refused,
    /// The fact that it was too large is recorded instead. A change of the state that a hook made is
    /// dropped, like other failures of hooks.
    Replaced,
}

impl Journal {
    /// Takes events into the fold, but for those that are recorded already: that is as good.
    pub(super) fn hold(&mut self, events: &[Event], oversize: Oversize) -> Result<()> {
        self.open_savepoint();
        for event in events {
            if self.is_known(event) {
                continue;
            }
            if let Some(event) = self.encoded(event, oversize)? {
                let run = self.run.clone();
                if let Err(error) = self.iterator.session_mut().apply(&event, Some(&run)) {
                    self.held.pop();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Adds an event, or what is recorded in its place, to what is staged.
    fn encoded<'a>(
        &mut self,
        event: &'a Event,
        oversize: Oversize,
    ) -> Result<Option<Cow<'a, Event>>> {
        let Some(bytes) = self.push(event)? else { return Ok(Some(Cow::Borrowed(event))) };
        let refused = || too_large(event, bytes, self.limit);
        if oversize == Oversize::Refused {
            return Err(refused());
        }
        if let Event::StateChanged { by, .. } = event {
            tracing::error!(run = %self.run, hook = by, bytes, "a change of the state is too large and was dropped");
            return Ok(None);
        }
        let instead = in_place_of(event, bytes, self.limit).ok_or_else(refused)?;
        tracing::warn!(run = %self.run, event = event.name(), bytes, "a fact was too large");
        match self.push(&instead)? {
            None => Ok(Some(Cow::Owned(instead))),
            Some(bytes) => Err(too_large(&instead, bytes, self.limit)),
        }
    }

    /// Adds an event to what is staged, unless it is too large: then returns its size.
    fn push(&mut self, event: &Event) -> Result<Option<usize>> {
        // The brackets of the append belong to it.
        let bytes = self.held.push(event)? + 2;
        if bytes <= self.limit {
            return Ok(None);
        }
        self.held.pop();
        Ok(Some(bytes))
    }

    /// Takes the decisions that follow from what is in the fold into it as well, and returns them. Calls whose
    /// suspension no append carries are answered: the run would end in an error, and so would each that resumes it.
    pub(super) fn decide(&mut self) -> Result<Vec<Event>> {
        let mut decided = self.decide_at_once()?;
        loop {
            let answers = self.unasked()?;
            if answers.is_empty() {
                return Ok(decided);
            }
            self.hold(&answers, Oversize::Replaced)?;
            decided.extend(answers);
            decided.extend(self.decide_at_once()?);
        }
    }

    /// The answers to the calls that the run would be suspended on, if no append carries the suspension.
    fn unasked(&mut self) -> Result<Vec<Event>> {
        let Some(RunOutcome::Suspended { on }) = self.iterator.ending() else {
            return Ok(Vec::new());
        };
        let end = Event::RunEnded { outcome: RunOutcome::Suspended { on: Arc::clone(&on) } };
        let Some(bytes) = self.push(&end)? else {
            self.held.pop();
            return Ok(Vec::new());
        };
        tracing::warn!(run = %self.run, bytes, "the question to people is too large");
        Ok(unasked(&on, bytes, self.limit))
    }

    fn decide_at_once(&mut self) -> Result<Vec<Event>> {
        let mut decided = self.iterator.decide()?;
        for index in 0..decided.len() {
            let Some(event) = decided.get(index) else { break };
            let Some(bytes) = self.push(event)? else { continue };
            // It is in the fold already, and so is what followed from it.
            let instead = in_place_of(event, bytes, self.limit);
            let instead = instead.ok_or_else(|| too_large(event, bytes, self.limit))?;
            let before = self.roll_back();
            self.hold(&before, Oversize::Replaced)?;
            self.hold(std::slice::from_ref(&instead), Oversize::Replaced)?;
            decided.truncate(index);
            decided.push(instead);
            decided.extend(self.decide_at_once()?);
            break;
        }
        Ok(decided)
    }

    /// Takes the staged events out of the fold, but for the first of the appends that they are
    /// divided into; returns the others.
    pub(super) fn divide(&mut self) -> Result<VecDeque<Batch>> {
        let mut parts = std::mem::take(&mut self.held).divide(self.limit);
        self.roll_back();
        if let Some(first) = parts.pop_front() {
            self.hold_again(first)?;
        }
        Ok(parts)
    }

    /// Takes events back into the fold that were staged before.
    pub(super) fn hold_again(&mut self, part: Batch) -> Result<()> {
        self.open_savepoint();
        for event in part.events() {
            self.iterator.session_mut().apply(event, Some(&self.run))?;
        }
        self.held.append(part);
        Ok(())
    }

    fn open_savepoint(&mut self) {
        if self.savepoint.is_none() {
            self.savepoint = Some(self.session().savepoint());
        }
    }

    /// Whether the log holds this fact under its key.
    fn is_known(&self, event: &Event) -> bool {
        let (step, last) = (self.session().open_step(), self.session().last_step());
        let open = |call| step.and_then(|step| step.call(call));
        // Every call of a closed step has its result.
        let closed = |call: &CallId| {
            let of = call.step();
            of.is_some_and(|of| of <= last) && of != step.map(|step| step.reply.step)
        };
        match event {
            Event::ModelReplied(reply) => reply.step <= last,
            Event::ToolFinished(finish) => {
                closed(&finish.call) || open(&finish.call).is_some_and(|it| it.finish.is_some())
            }
            Event::ChildStarted(start) => {
                // A call that has its result meanwhile waits for no child any more.
                closed(&start.call)
                    || open(&start.call).is_some_and(|it| it.child.is_some() || it.finish.is_some())
            }
            Event::ToolStarted { call, attempt, .. } => {
                // Of two processes that start the same try, one runs it.
                let tried = |started: &StartedCall| started.attempt >= *attempt;
                // A call that has its result meanwhile need not be started any more.
                closed(call)
                    || open(call).is_some_and(|it| {
                        it.finish.is_some() || it.started.as_ref().is_some_and(tried)
                    })
            }
            // A call that has its result meanwhile is not tried again.
            Event::PartRepeated { call: Some(call) } => {
                closed(call) || open(call).is_some_and(|it| it.finish.is_some())
            }
            // It comes before its call's result, in the same append.
            Event::UsageRecorded { call: Some(call), source_type, .. } => {
                let accounted = |it: &OpenCall| {
                    let waited = it.waiting.as_ref().is_some_and(|waiting| waiting.accounted);
                    it.finish.is_some() || waited && source_type == WAIT_USAGE
                };
                closed(call) || open(call).is_some_and(accounted)
            }
            _ => false,
        }
    }
}
