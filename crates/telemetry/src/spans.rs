//! The spans of recorded events.

mod call;
mod messages;
mod model_call;
mod run;
mod wait;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{Event, RecordedEvent, Trigger};
use helix_agents_core::id::{CallId, RunId};
use helix_agents_core::session::{RunRecord, RunStatus, Session, StepRecord};
use helix_agents_core::trace::{Operation, SpanId, TraceId};

use crate::content::Content;
use crate::conventions as names;
use crate::langfuse;
use crate::options::{Layout, SpanOptions};
use crate::sampling::is_sampled;
use crate::span::{Span, SpanKind};

/// Returns the spans of the operations that these events complete. `session` is the session after the append that
/// contains the events.
///
/// Runs, model calls, tool calls that ran, and waits for answers have spans. The result depends on nothing but the arguments.
#[must_use]
pub fn spans(session: &Session, events: &[RecordedEvent], options: &SpanOptions) -> Vec<Span> {
    let scope = Scope::new(session, options);
    let mut found = Vec::new();
    let is_exported =
        options.has_all_traces || is_sampled(session.overview(), scope.trace, options.sample_ratio);
    if !is_exported {
        return found;
    }
    for recorded in events {
        let Some(run) = recorded.run.as_ref() else { continue };
        match &recorded.event {
            Event::RunStarted { trigger, .. } => {
                if *trigger == Trigger::Recover {
                    found.extend(scope.lost_run(run, recorded.at));
                }
                found.extend(scope.waits(recorded.at));
            }
            Event::RunEnded { .. } => found.extend(scope.ended_run(run)),
            Event::ModelReplied(reply) => found.push(scope.model_call(run, recorded.at, reply)),
            Event::ToolFinished(finish) => found.extend(scope.tool_call(run, recorded.at, finish)),
            _ => {}
        }
    }
    if let Some(settings) = &options.langfuse {
        found.iter_mut().for_each(|span| langfuse::decorate(span, session, settings));
    }
    found
}

/// The common data of the spans of an append.
#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    session: &'a Session,
    options: &'a SpanOptions,
    trace: TraceId,
}

impl<'a> Scope<'a> {
    fn new(session: &'a Session, options: &'a SpanOptions) -> Self {
        let trace = match options.layout {
            Layout::Session => TraceId::of_session(session.root()),
            // The trace does not depend on the operation.
            Layout::Turn => session.trace_parent(Operation::ModelCall { step: 0 }).trace(),
        };
        Self { session, options, trace }
    }

    fn content(&self) -> &'a Content {
        &self.options.content
    }

    /// Creates a span with the attributes that all spans have.
    fn span(
        &self,
        operation: Operation<'_>,
        kind: SpanKind,
        name: &str,
        subject: &str,
        (start, end): (Timestamp, Timestamp),
    ) -> Span {
        let session = self.session;
        let mut span = Span {
            trace: self.trace,
            id: SpanId::of(session.id(), operation),
            parent: None,
            name: format!("{name} {subject}"),
            kind,
            // A clock that went back must not give a span a negative duration.
            start: start.min(end),
            end,
            attributes: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            error: None,
        };
        span.set(names::OPERATION, name);
        span.set(names::CONVERSATION, session.id().as_str());
        span.set(names::AGENT, &**session.agent());
        span
    }

    /// Returns the parent of runs and waits: the caller's span, or the call of a sub-agent.
    fn turn_parent(&self) -> Option<SpanId> {
        match (self.options.layout, self.session.parent()) {
            (Layout::Session, Some(parent)) => {
                Some(SpanId::of(&parent.session, Operation::ToolCall(&parent.call)))
            }
            // The caller's span belongs to another trace.
            (Layout::Session, None) => None,
            (Layout::Turn, _) => self.session.turn_parent().map(|parent| parent.span()),
        }
    }

    /// Returns the run of the turn before this run.
    fn previous_run(&self, run: &RunId) -> Option<&'a RunRecord> {
        let mut runs = self.session.runs().rev().skip_while(|known| known.id != *run);
        let this = runs.next()?;
        runs.next().filter(|previous| previous.turn == this.turn)
    }

    /// Returns `true` if a call waited for a human, or if the log does not show whether it did.
    fn is_human(&self, call: &CallId) -> bool {
        let record = self.step_of(call).and_then(|step| step.call(call));
        record.is_none_or(|record| record.waiting.is_some())
    }

    /// Returns the step that made a call.
    fn step_of(&self, call: &CallId) -> Option<&'a StepRecord> {
        let closed = self.session.closed_steps().rev().map(|(_, step)| step);
        let mut steps = self.session.open_step().into_iter().chain(closed);
        steps.find(|step| step.call(call).is_some())
    }
}

/// Returns `true` if a run has stopped without ending.
fn is_lost(run: &RunRecord) -> bool {
    run.status == RunStatus::Superseded
}

/// Returns the times of an operation that was recorded at a time.
fn times(at: Timestamp, ended: Option<Timestamp>, took_ms: u64) -> (Timestamp, Timestamp) {
    // The estimate of the end may be later than the append.
    let end = ended.unwrap_or(at).min(at);
    let took = i64::try_from(took_ms).unwrap_or(i64::MAX);
    (Timestamp(end.0.saturating_sub(took)), end)
}

/// Returns the text of a value that is serialised as a string, such as a stop reason.
fn text_of(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}
