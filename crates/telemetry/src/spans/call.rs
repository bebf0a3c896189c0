//! The spans of tool calls and of calls of sub-agents.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{ToolFinish, ToolOutcome};
use helix_agents_core::id::RunId;
use helix_agents_core::trace::{Operation, SpanId};

use super::{Scope, times};
use crate::content::Field;
use crate::conventions as names;
use crate::span::{Span, SpanKind};

impl Scope<'_> {
    /// Returns the span of a call that was executed, or whose sub-agent was.
    pub(super) fn tool_call(
        &self,
        run: &RunId,
        at: Timestamp,
        finish: &ToolFinish,
    ) -> Option<Span> {
        if finish.attempts == 0 && finish.child.is_none() {
            return None;
        }
        let call = self.session.tool_call(&finish.call)?;
        let operation = Operation::ToolCall(&call.id);
        let (start, end) = times(at, finish.ended, finish.took_ms);
        let step = self.step_of(&call.id);
        // The time that the call took is not recorded: several processes may have waited for the sub-agent.
        let record = step.and_then(|step| step.call(&call.id));
        let delegated = record.and_then(|record| record.child.as_ref()?.at);
        let times = (delegated.unwrap_or(start), end);
        let mut span = self.span(operation, SpanKind::Internal, "execute_tool", &call.name, times);
        span.parent = Some(SpanId::of(self.session.id(), Operation::Run(run)));
        span.set(names::TOOL_NAME, &*call.name);
        span.set(names::TOOL_TYPE, "function");
        span.set(names::TOOL_CALL, call.id.as_str());
        span.set(names::ATTEMPTS, finish.attempts);
        let content = self.content();
        // Arguments that a human approved were shown to that human.
        let is_human = self.is_human(&call.id);
        if content.is_recorded() && (!is_human || content.includes_human()) {
            let arguments = match &finish.input {
                Some(input) => input.text().to_owned(),
                None => call.arguments.text().to_owned(),
            };
            span.set(names::TOOL_ARGUMENTS, content.attribute(Field::Arguments, &arguments));
        }
        match &finish.outcome {
            ToolOutcome::Success(result) if content.is_recorded() => {
                span.set(names::TOOL_RESULT, content.attribute(Field::Result, result.text()));
            }
            ToolOutcome::Success(_) | ToolOutcome::Acknowledged => {}
            ToolOutcome::Error(error) => {
                span.set(names::ERROR_TYPE, &*error.code);
                span.error = Some(match content.is_recorded() {
                    true => content.attribute(Field::Error, &error.message),
                    false => error.code.clone().into_owned(),
                });
            }
        }
        Some(span)
    }
}
