//! The spans of runs.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{PendingKind, Suspension};
use helix_agents_core::id::RunId;
use helix_agents_core::session::RunRecord;
use helix_agents_core::trace::{Operation, SpanId};

use super::{Scope, is_lost, text_of};
use crate::content::Field;
use crate::conventions as names;
use crate::options::Layout;
use crate::span::{Link, Span, SpanEvent, SpanKind};

impl Scope<'_> {
    /// Returns the span of a run that ended.
    pub(super) fn ended_run(&self, id: &RunId) -> Option<Span> {
        let run = self.session.runs().rev().find(|run| run.id == *id)?;
        let end = run.ended?;
        let mut span = self.run(run, end);
        if let Some(on) = &run.suspended {
            span.events.push(suspended(on, end));
        }
        if let Some(error) = &run.error {
            span.set(names::ERROR_TYPE, &*error.code);
            span.error = Some(match self.content().is_recorded() {
                true => self.content().attribute(Field::Error, &error.message),
                false => error.code.clone().into_owned(),
            });
        }
        Some(span)
    }

    /// Returns the span of the run that this run has taken over. Its process stopped at an unknown time, so the span ends
    /// when the next run started.
    pub(super) fn lost_run(&self, by: &RunId, at: Timestamp) -> Option<Span> {
        let lost = self.previous_run(by).filter(|run| is_lost(run))?;
        let mut span = self.run(lost, at);
        span.set(names::ERROR_TYPE, names::LOST);
        span.error = Some("the process stopped, and another run took over".to_owned());
        Some(span)
    }

    fn run(&self, run: &RunRecord, end: Timestamp) -> Span {
        let start = run.started.unwrap_or(end);
        let (operation, agent) = (Operation::Run(&run.id), self.session.agent());
        let mut span =
            self.span(operation, SpanKind::Internal, "invoke_agent", agent, (start, end));
        span.parent = self.turn_parent();
        span.set(names::RUN, run.id.as_str());
        span.set(names::TURN, run.turn);
        span.set(names::TRIGGER, text_of(&run.trigger));
        span.set(names::STATUS, run.status.as_str());
        span.set(names::RUNTIME, &*run.runtime);
        if let Some(parent) = self.session.parent() {
            span.set(names::PARENT_SESSION, parent.session.as_str());
            span.set(names::PARENT_CALL, parent.call.as_str());
        }
        if let Some(previous) = self.previous_run(&run.id) {
            let relation = if is_lost(previous) { "took_over" } else { "resumed_from" };
            let other = SpanId::of(self.session.id(), Operation::Run(&previous.id));
            span.links.push(Link { trace: self.trace, span: other, relation });
            if previous.status.is_suspended() {
                let resumed = SpanEvent { name: names::RESUMED, at: start, attributes: Vec::new() };
                span.events.push(resumed);
            }
        }
        if let Some(caller) = run
            .trace
            .filter(|caller| caller.trace() != self.trace || self.options.layout == Layout::Session)
        {
            let (trace, other) = (caller.trace(), caller.span());
            span.links.push(Link { trace, span: other, relation: "requested_by" });
        }
        span
    }
}

/// Returns the event of a run that waits.
fn suspended(on: &Suspension, at: Timestamp) -> SpanEvent {
    let has_approval =
        on.calls.iter().any(|call| matches!(call.kind, PendingKind::Approval { .. }));
    let reason = match (on.calls.is_empty(), has_approval) {
        (true, _) => "children",
        (false, true) => "approval",
        (false, false) => "client_tool",
    };
    let calls: Vec<_> = on.calls.iter().map(|call| call.call.to_string()).collect();
    let mut attributes = vec![(names::REASON.into(), reason.into())];
    if !calls.is_empty() {
        attributes.push((names::CALLS.into(), calls.into()));
    }
    SpanEvent { name: names::SUSPENDED, at, attributes }
}
