//! Staged events: applied to the fold, and not in the log yet.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::Journal;
use super::batch::{Batch, Origin, too_large};
use super::oversize::{in_place_of, oversized_calls};
use crate::error::Result;
use crate::event::{Event, RunOutcome};
use crate::id::CallId;
use crate::machine::session::{CallRecord, StartedCall, WAIT_USAGE};
use crate::machine::step::StepIterator;

/// The handling of an event that does not fit into any append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oversize {
    /// The event is rejected with an error, because a caller provided it.
    Refused,
    /// An event that says that the fact was too large is recorded instead. A state change by a hook
    /// is dropped, like other failures of hooks.
    Replaced,
}

impl Journal {
    /// Stages facts. Facts that the log contains already are skipped. The events that create a session or start a run
    /// are staged as facts too: a conflict discards all of them.
    pub(super) fn hold(&mut self, facts: &[Event], oversize: Oversize) -> Result<()> {
        self.hold_as(Origin::Fact, facts, oversize)
    }

    /// Stages decisions that the iterator has not applied to the fold.
    pub(super) fn hold_decisions(&mut self, decisions: &[Event]) -> Result<()> {
        self.hold_as(Origin::Decision, decisions, Oversize::Replaced)
    }

    fn hold_as(&mut self, origin: Origin, events: &[Event], oversize: Oversize) -> Result<()> {
        self.open_savepoint();
        for event in events {
            if self.is_known(event) {
                continue;
            }
            if let Some(event) = self.encoded(event, origin, oversize)? {
                let run = self.run.clone();
                if let Err(error) = self.iterator.session_mut().apply(&event, Some(&run)) {
                    self.held.pop();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Adds an event, or its replacement, to the staged events. Returns the added event.
    fn encoded<'a>(
        &mut self,
        event: &'a Event,
        origin: Origin,
        oversize: Oversize,
    ) -> Result<Option<Cow<'a, Event>>> {
        let Some(bytes) = self.push(event, origin)? else {
            return Ok(Some(Cow::Borrowed(event)));
        };
        let refused = || too_large(event, bytes, self.limit);
        if oversize == Oversize::Refused {
            return Err(refused());
        }
        if let Event::StateChanged { by, .. } = event {
            tracing::error!(run = %self.run, hook = by, bytes, "a hook's state change is too large and was dropped");
            return Ok(None);
        }
        let instead = in_place_of(event, bytes, self.limit).ok_or_else(refused)?;
        tracing::warn!(run = %self.run, event = event.name(), bytes, "a fact was too large");
        match self.push(&instead, origin)? {
            None => Ok(Some(Cow::Owned(instead))),
            Some(bytes) => Err(too_large(&instead, bytes, self.limit)),
        }
    }

    /// Adds an event to the staged events, unless it is too large. Returns its size in that case.
    fn push(&mut self, event: &Event, origin: Origin) -> Result<Option<usize>> {
        // The size includes the brackets of the append.
        let bytes = self.held.push(event, origin)? + 2;
        if bytes <= self.limit {
            return Ok(None);
        }
        self.held.pop();
        Ok(Some(bytes))
    }

    /// Applies the decisions that `decide` makes from the fold, and returns them. If a suspension is too large for an
    /// append, its calls get an error as their result. Otherwise the run would fail, and so would every run that
    /// resumes it.
    pub(super) fn decide(
        &mut self,
        decide: fn(&mut StepIterator) -> Result<Vec<Event>>,
    ) -> Result<Vec<Event>> {
        let mut decided = self.decide_once(decide)?;
        loop {
            let answers = self.oversized_calls()?;
            if answers.is_empty() {
                return Ok(decided);
            }
            self.hold_decisions(&answers)?;
            decided.extend(answers);
            decided.extend(self.decide_once(decide)?);
        }
    }

    /// Returns results for the pending calls of the next suspension, if that is too large for an append.
    fn oversized_calls(&mut self) -> Result<Vec<Event>> {
        let Some(RunOutcome::Suspended { on }) = self.iterator.pending_outcome() else {
            return Ok(Vec::new());
        };
        let end = Event::RunEnded { outcome: RunOutcome::Suspended { on: Arc::clone(&on) } };
        let Some(bytes) = self.push(&end, Origin::Decision)? else {
            self.held.pop();
            return Ok(Vec::new());
        };
        tracing::warn!(run = %self.run, bytes, "the suspension is too large for an append");
        Ok(oversized_calls(&on, bytes, self.limit))
    }

    fn decide_once(
        &mut self,
        decide: fn(&mut StepIterator) -> Result<Vec<Event>>,
    ) -> Result<Vec<Event>> {
        self.open_savepoint();
        let mut decided = decide(&mut self.iterator)?;
        for index in 0..decided.len() {
            let Some(event) = decided.get(index) else { break };
            let Some(bytes) = self.push(event, Origin::Decision)? else { continue };
            // The fold already contains the event and the decisions that followed from it.
            let instead = in_place_of(event, bytes, self.limit);
            let instead = instead.ok_or_else(|| too_large(event, bytes, self.limit))?;
            let before = self.roll_back();
            self.restage(before)?;
            self.hold_decisions(std::slice::from_ref(&instead))?;
            decided.truncate(index);
            decided.push(instead);
            decided.extend(self.decide_once(decide)?);
            break;
        }
        Ok(decided)
    }

    /// Divides the staged events into appends. Keeps the first batch staged and returns the others,
    /// which leave the fold.
    pub(super) fn divide(&mut self) -> Result<VecDeque<Batch>> {
        let mut batches = std::mem::take(&mut self.held).divide(self.limit);
        self.roll_back();
        if let Some(first) = batches.pop_front() {
            self.restage(first)?;
        }
        Ok(batches)
    }

    /// Stages a batch again that was removed from the fold.
    pub(super) fn restage(&mut self, batch: Batch) -> Result<()> {
        self.open_savepoint();
        for event in batch.events() {
            self.iterator.session_mut().apply(event, Some(&self.run))?;
        }
        self.held.append(batch);
        Ok(())
    }

    fn open_savepoint(&mut self) {
        if self.savepoint.is_none() {
            self.savepoint = Some(self.session().savepoint());
        }
    }

    /// Returns `true` if the fold, including staged events, already contains this fact or makes it obsolete: the reply
    /// of the same step, or the start, result or usage of the same call.
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
                closed(&finish.call) || open(&finish.call).is_some_and(|call| call.finish.is_some())
            }
            Event::ChildStarted(start) => {
                // A call that has received its result does not wait for a child.
                closed(&start.call)
                    || open(&start.call)
                        .is_some_and(|call| call.child.is_some() || call.finish.is_some())
            }
            Event::ToolStarted { call, attempt, .. } => {
                // If two processes start the same attempt, one of them runs it.
                let tried = |started: &StartedCall| started.attempt >= *attempt;
                // A call that has received its result does not have to be started.
                closed(call)
                    || open(call).is_some_and(|call| {
                        call.finish.is_some() || call.started.as_ref().is_some_and(tried)
                    })
            }
            // A call that has received its result is not retried, and does not wait for its child.
            Event::WorkItemRepeated { call: Some(call) } | Event::ChildWaiting { call } => {
                closed(call) || open(call).is_some_and(|call| call.finish.is_some())
            }
            // The usage precedes its call's result, in the same append.
            Event::UsageRecorded { call: Some(call), source_type, .. } => {
                let accounted = |call: &CallRecord| {
                    let waited = call.waiting.as_ref().is_some_and(|waiting| waiting.accounted);
                    call.finish.is_some() || waited && source_type == WAIT_USAGE
                };
                closed(call) || open(call).is_some_and(accounted)
            }
            _ => false,
        }
    }
}
