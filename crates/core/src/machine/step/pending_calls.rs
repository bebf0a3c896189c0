//! Pending calls: which calls wait for an approval or a client tool result, the suspension that
//! requests them, and the results that follow from submissions and expired deadlines.

use std::sync::Arc;

use super::synthetic_results::error;
use super::tool_outcome::to_outcome;
use crate::agent::AgentDefinition;
use crate::error::ErrorCode;
use crate::event::{Answer, Event, PendingCall, PendingKind, Suspension, ToolFinish};
use crate::id::CallId;
use crate::json::Json;
use crate::machine::session::{CallRecord, Session, StepRecord, WAIT_USAGE, Waiting};
use crate::message::ToolCall;
use crate::tool::{ApprovalContext, Tool, digest};

/// The gates of a reply's calls, in call order.
#[derive(Debug, Clone, Default)]
pub(super) struct Gates(Vec<Gate>);

/// The state of a call before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// Not determined, because the call had a result, waited or had started.
    Unchecked,
    /// The call waits for nothing.
    Ready,
    /// The call waits for an approval or a result.
    Pending(PendingKind),
}

impl Gates {
    /// Returns what a call still waits for.
    pub(super) fn kind(&self, step: &StepRecord, call: &ToolCall) -> Option<PendingKind> {
        let (index, (_, state)) =
            step.pairs().enumerate().find(|(_, (other, _))| other.id == call.id)?;
        match &state.waiting {
            Some(waiting) => waiting.answer.is_none().then_some(waiting.on.kind),
            // A started call does not need to wait: that was checked before it started.
            None if state.started.is_some() => None,
            None => match self.0.get(index)? {
                Gate::Unchecked | Gate::Ready => None,
                Gate::Pending(kind) => Some(*kind),
            },
        }
    }
}

/// Determines which calls of a reply are pending. Gates in `known` are kept: approval conditions
/// are user code, and see the state at the start of the step.
pub(super) fn gates(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
    known: Option<&Gates>,
) -> Gates {
    let evaluate = |call: &ToolCall, state: &CallRecord| {
        if state.finish.is_some() || state.waiting.is_some() || state.started.is_some() {
            return Gate::Unchecked;
        }
        let Some(tool) = agent.tool(&call.name) else { return Gate::Ready };
        if tool.is_client() {
            return Gate::Pending(PendingKind::Client);
        }
        let cx = ApprovalContext {
            agent: agent.name(),
            session: session.id(),
            call: &call.id,
            tool: tool.name(),
            state: session.state(),
        };
        if tool.may_need_approval() && tool.needs_approval(&arguments(call).to_value(), &cx) {
            Gate::Pending(PendingKind::Approval { editable: tool.answer_options.editable })
        } else {
            Gate::Ready
        }
    };
    let gate = |(index, (call, state)): (usize, (&ToolCall, &CallRecord))| {
        let known = known.and_then(|known| known.0.get(index)).copied();
        known.filter(|gate| *gate != Gate::Unchecked).unwrap_or_else(|| evaluate(call, state))
    };
    let asks = |call: &ToolCall| {
        agent.tool(&call.name).is_some_and(|tool| tool.is_client() || tool.may_need_approval())
    };
    if step.tool_calls().iter().any(asks) {
        Gates(step.pairs().enumerate().map(gate).collect())
    } else {
        Gates::default()
    }
}

/// Returns what the step waits for. A call that was already pending keeps its deadline.
pub(super) fn suspension(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
    gates: &Gates,
) -> Suspension {
    let pending = |(call, state): (&ToolCall, &CallRecord)| {
        let kind = gates.kind(step, call).filter(|_| state.finish.is_none())?;
        if let Some(waiting) = &state.waiting {
            return Some(Arc::clone(&waiting.on));
        }
        let tool = agent.tool(&call.name)?;
        let deadline = tool.answer_options.deadline_of(&arguments(call));
        Some(Arc::new(PendingCall {
            call: call.id.clone(),
            tool: Arc::clone(&call.name),
            kind,
            digest: digest(arguments(call).text()),
            deadline: deadline.map(|duration| session.clock().after(duration)),
            schema: schema(tool, kind),
        }))
    };
    let calls: Vec<_> = step.pairs().filter_map(pending).collect();
    let waited = |id: &CallId| step.call(id).is_some_and(|state| state.waiting.is_some());
    let before = calls.iter().map(|pending| pending.call.clone()).filter(waited).collect();
    let waits = |state: &CallRecord| {
        let child = state.child.as_ref().filter(|_| state.finish.is_none())?;
        Some(Arc::clone(&child.start))
    };
    let children = step.calls.iter().filter_map(waits).collect();
    Suspension { step: step.reply.step, calls, before, children }
}

/// Returns the schema of the submissions that a pending call of this kind accepts.
fn schema(tool: &Tool, kind: PendingKind) -> Option<Json> {
    let schema = match kind {
        PendingKind::Client => tool.output.as_ref()?.as_ref().ok()?,
        PendingKind::Approval { editable: true } => tool.input().ok()?,
        PendingKind::Approval { .. } => return None,
    };
    Some(schema.json().clone())
}

/// Returns the results of open calls that follow from submissions or from expired deadlines.
pub(super) fn submitted_or_expired_results(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
) -> Vec<ToolFinish> {
    let result = |(call, state): (&ToolCall, &CallRecord)| {
        let waiting = state.waiting.as_deref().filter(|_| state.finish.is_none())?;
        let Some(answered) = &waiting.answer else {
            let late = waiting.is_expired(session.clock());
            return late.then(|| error(call, ErrorCode::ToolUnanswered, unanswered(waiting)));
        };
        match &answered.answer {
            Answer::Approved { .. } => None,
            Answer::Denied { reason } => {
                let mut message = format!("Tool call {} was not approved by the user", call.name);
                if let Some(reason) = reason {
                    message = format!("{message}: {reason}");
                }
                Some(error(call, ErrorCode::ToolDenied, message))
            }
            Answer::Error(message) => Some(error(call, ErrorCode::ToolFailed, message.clone())),
            Answer::Returned(result) => {
                let tool = agent.tool(&call.name)?;
                let outcome = to_outcome(agent, tool, Ok(result.clone()));
                Some(ToolFinish::without_run(call.id.clone(), outcome))
            }
        }
    };
    step.pairs().filter_map(result).collect()
}

fn unanswered(waiting: &Waiting) -> &'static str {
    match waiting.on.kind {
        PendingKind::Client => "the result of the call was not submitted in time",
        PendingKind::Approval { .. } => "approval timed out; the tool was not executed",
    }
}

/// Returns the open calls that are no longer pending and whose wait time is not recorded.
pub(super) fn unaccounted(session: &Session, step: &StepRecord) -> Vec<CallId> {
    let ended = |(call, state): (&ToolCall, &CallRecord)| {
        let waiting = state.waiting.as_deref().filter(|waiting| !waiting.accounted)?;
        waiting.waited(session.clock())?;
        state.finish.is_none().then(|| call.id.clone())
    };
    step.pairs().filter_map(ended).collect()
}

/// Returns the usage events for the time that calls were pending.
pub(super) fn wait_usage(session: &Session, calls: &[CallId]) -> Vec<Event> {
    let Some(step) = session.open_step() else { return Vec::new() };
    let usage = |id: &CallId| {
        let waiting = step.call(id)?.waiting.as_deref()?;
        let waited = waiting.waited(session.clock())?;
        Some(Event::UsageRecorded {
            source_type: WAIT_USAGE.to_owned(),
            source_name: waiting.on.tool.to_string(),
            amount: waited.as_secs_f64() * 1000.0,
            call: Some(id.clone()),
            success: waiting.answer.is_some(),
        })
    };
    calls.iter().filter_map(usage).collect()
}

fn arguments(call: &ToolCall) -> Json {
    call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object)
}
