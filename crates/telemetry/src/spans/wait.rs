//! The spans of waits for answers.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{Answer, PendingKind};
use helix_agents_core::session::Waiting;
use helix_agents_core::trace::Operation;

use super::Scope;
use crate::content::Field;
use crate::conventions as names;
use crate::span::{Link, Span, SpanKind};

impl<'a> Scope<'a> {
    /// Returns the spans of the waits that ended before a run started at this time. The run consumes their answers.
    pub(super) fn waits(self, at: Timestamp) -> impl Iterator<Item = Span> {
        let records = self.session.open_step().map_or(&[][..], |step| &step.calls);
        let waits = records.iter().filter(|record| record.finish.is_none());
        waits.filter_map(|record| record.waiting.as_deref()).filter_map(move |waiting| {
            let until = match &waiting.answer {
                Some(answer) => answer.at.unwrap_or(at),
                None if waiting.is_expired(at) => waiting.on.deadline?,
                None => return None,
            };
            Some(self.wait(waiting, until))
        })
    }

    fn wait(&self, waiting: &Waiting, until: Timestamp) -> Span {
        let call = &waiting.on;
        let times = (waiting.since.unwrap_or(until), until);
        let operation = Operation::Wait(&call.call);
        let mut span = self.span(operation, SpanKind::Internal, "wait", &call.tool, times);
        span.parent = self.turn_parent();
        span.set(names::TOOL_NAME, &*call.tool);
        span.set(names::TOOL_CALL, call.call.as_str());
        let kind = match call.kind {
            PendingKind::Client => "client",
            PendingKind::Approval { .. } => "approval",
            _ => "other",
        };
        span.set(names::WAIT_KIND, kind);
        let answered = waiting.answer.as_ref();
        let outcome = match answered.map(|answered| &answered.answer) {
            Some(Answer::Returned(_)) => "returned",
            Some(Answer::Error(_)) => "error",
            Some(Answer::Approved { .. }) => "approved",
            Some(Answer::Denied { .. }) => "denied",
            Some(_) => "other",
            None => "expired",
        };
        span.set(names::WAIT_OUTCOME, outcome);
        if self.content().includes_human()
            && let Some(answered) = answered
            && let Ok(text) = serde_json::to_string(&answered.answer)
        {
            span.set(names::ANSWER, self.content().attribute(Field::Answer, &text));
        }
        if let Some(caller) = answered.and_then(|answered| answered.trace) {
            let (trace, other) = (caller.trace(), caller.span());
            span.links.push(Link { trace, span: other, relation: "answered_by" });
        }
        span
    }
}
