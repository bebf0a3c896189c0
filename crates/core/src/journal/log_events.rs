//! Log events: `tracing` events with stable names, for operators.
//!
//! The process that appends an event to a log emits the log event, once the store has acknowledged the append. A replay
//! therefore emits nothing, and a takeover does not emit the log events of the interrupted run again. Log events about
//! sessions contain ids, names, numbers and codes, and never messages, arguments, results or the texts of errors.

use tracing::Level;
use tracing::field::{DisplayValue, display};

use crate::error::ErrorCode;
use crate::event::{Event, PendingCall, PendingKind, RunOutcome, ToolOutcome, Trigger};
use crate::id::{CallId, RunId};
use crate::machine::session::{ResolvedCall, Session, SessionOverview};
use crate::trace::{Operation, SpanId, TraceId};

/// The target of all log events, for filters.
pub const TARGET: &str = "helix_agents";

/// The fields of a log event about a run.
const RUN: &[&str] = &["session", "agent", "run", "turn", "trace_id", "span_id"];

/// The fields of a log event about the end of a run.
const RUN_END: &[&str] =
    &["session", "agent", "run", "turn", "status", "code", "trace_id", "span_id"];

/// The fields of a log event about a call.
const CALL: &[&str] =
    &["session", "agent", "run", "turn", "step", "call", "tool", "trace_id", "span_id"];

/// The fields of a log event about a pending call.
const PENDING: &[&str] =
    &["session", "agent", "run", "turn", "step", "call", "tool", "kind", "trace_id", "span_id"];

/// All log events.
pub const LOG_EVENTS: &[LogEvent] = &[
    LogEvent { name: "run.started", levels: &[Level::INFO], fields: RUN },
    LogEvent { name: "run.taken_over", levels: &[Level::INFO], fields: RUN },
    LogEvent { name: "run.ended", levels: &[Level::INFO, Level::WARN], fields: RUN_END },
    LogEvent { name: "client_tool.suspended", levels: &[Level::INFO], fields: PENDING },
    LogEvent { name: "client_tool.submitted", levels: &[Level::INFO], fields: PENDING },
    LogEvent { name: "client_tool.validation_failed", levels: &[Level::WARN], fields: PENDING },
    LogEvent { name: "client_tool.timeout", levels: &[Level::WARN], fields: CALL },
    LogEvent { name: "client_tool.aborted", levels: &[Level::INFO], fields: CALL },
    LogEvent { name: "subagent.dispatch_failed", levels: &[Level::ERROR], fields: CALL },
    LogEvent { name: "telemetry.dropped", levels: &[Level::WARN], fields: &["dropped", "reason"] },
    LogEvent { name: "telemetry.metrics_failed", levels: &[Level::WARN], fields: &["reason"] },
];

/// The description of a log event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogEvent {
    /// The name, which is the message of the `tracing` event.
    pub name: &'static str,
    /// The levels at which it is emitted.
    pub levels: &'static [Level],
    /// The names of its fields. A field without a value is left out.
    pub fields: &'static [&'static str],
}

/// Emits a log event about a run. Nothing is computed if no subscriber wants it.
macro_rules! run_event {
    ($level:ident, $name:literal, $session:ident, $run:ident $(, $field:ident = $value:expr)*) => {
        tracing::event!(
            target: TARGET,
            Level::$level,
            session = %$session.id(),
            agent = %$session.agent(),
            run = %$run,
            turn = $session.turn(),
            $($field = $value,)*
            trace_id = %trace_id($session),
            span_id = %SpanId::of($session.id(), Operation::Run($run)),
            $name
        )
    };
}

/// Emits a log event about a call of a session's last run. Nothing is computed if no subscriber wants it.
macro_rules! call_event {
    (
        $level:ident, $name:literal, $session:ident, $operation:ident($call:expr), $tool:expr
        $(, $field:ident = $value:expr)*
    ) => {
        tracing::event!(
            target: TARGET,
            Level::$level,
            session = %$session.id(),
            agent = %$session.agent(),
            run = $session.last_run().map(|run| display(&run.id)),
            turn = $session.turn(),
            step = $call.step(),
            call = %$call,
            tool = $tool.map(display),
            $($field = $value,)*
            trace_id = %trace_id($session),
            span_id = %SpanId::of($session.id(), Operation::$operation($call)),
            $name
        )
    };
}

/// Emits the log events of an append of a run. `session` is the session after the append.
pub(super) fn recorded(session: &Session, run: &RunId, events: &[Event]) {
    if !is_enabled() {
        return;
    }
    for event in events {
        match event {
            Event::RunStarted { trigger, .. } => started(session, run, *trigger),
            Event::RunEnded { outcome } => ended(session, run, outcome),
            Event::ToolFinished(finish) => finished(session, &finish.call, &finish.outcome),
            _ => {}
        }
    }
}

/// Emits the log event of a request from outside a run. `session` is the session after its append.
pub(super) fn requested(session: &SessionOverview, request: &Event) {
    if let Event::Submitted { call, .. } = request
        && is_enabled()
    {
        let step = session.open_step();
        let pending = step.and_then(|step| step.call(call)?.waiting.as_ref());
        let pending = pending.map(|waiting| &*waiting.on);
        let (tool, kind) = (pending.map(|pending| &pending.tool), pending.map(kind));
        call_event!(INFO, "client_tool.submitted", session, Wait(call), tool, kind = kind);
    }
}

/// Emits the log event of an answer that does not match the schema of its call.
pub(super) fn validation_failed(session: &SessionOverview, pending: &PendingCall) {
    let (call, tool, kind) = (&pending.call, Some(&pending.tool), kind(pending));
    call_event!(WARN, "client_tool.validation_failed", session, Wait(call), tool, kind = kind);
}

fn started(session: &SessionOverview, run: &RunId, trigger: Trigger) {
    run_event!(INFO, "run.started", session, run);
    if trigger == Trigger::Recover {
        run_event!(INFO, "run.taken_over", session, run);
    }
}

fn ended(session: &SessionOverview, run: &RunId, outcome: &RunOutcome) {
    let status = session.last_run().map(|run| display(run.status.as_str()));
    match outcome {
        RunOutcome::Failed { error } => {
            let code = display(&error.code);
            run_event!(WARN, "run.ended", session, run, status = status, code = code);
        }
        RunOutcome::Suspended { on } => {
            for pending in on.new_calls() {
                let (call, tool, kind) = (&pending.call, Some(&pending.tool), kind(pending));
                call_event!(INFO, "client_tool.suspended", session, Wait(call), tool, kind = kind);
            }
            run_event!(INFO, "run.ended", session, run, status = status);
        }
        _ => run_event!(INFO, "run.ended", session, run, status = status),
    }
}

fn finished(session: &Session, call: &CallId, outcome: &ToolOutcome) {
    let tool = || session.tool_call(call).map(|call| &call.name);
    match session.settled_call(call) {
        Some(ResolvedCall::Expired) => {
            call_event!(WARN, "client_tool.timeout", session, Wait(call), tool());
        }
        Some(ResolvedCall::Dropped) => {
            call_event!(INFO, "client_tool.aborted", session, Wait(call), tool());
        }
        Some(ResolvedCall::Answered(_)) | None => {}
    }
    let code = ErrorCode::SubAgentDispatchFailed;
    if matches!(outcome, ToolOutcome::Error(error) if error.is(code)) {
        call_event!(ERROR, "subagent.dispatch_failed", session, ToolCall(call), tool());
    }
}

/// Returns `true` if a subscriber may want log events of any level.
fn is_enabled() -> bool {
    tracing::enabled!(target: TARGET, Level::ERROR)
}

fn trace_id(session: &SessionOverview) -> TraceId {
    match session.turn_parent() {
        Some(parent) => parent.trace(),
        None => TraceId::of_turn(session.id(), session.turn()),
    }
}

fn kind(pending: &PendingCall) -> DisplayValue<&'static str> {
    display(match pending.kind {
        PendingKind::Client => "client",
        PendingKind::Approval { .. } => "approval",
    })
}

#[cfg(test)]
mod tests;
