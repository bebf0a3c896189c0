//! Crash loops: consecutive runs and attempts that crash without a new result. The last one stops
//! and reports an error.

use crate::agent::AgentDefinition;
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{RunOutcome, ToolFinish, ToolOutcome};
use crate::machine::session::{Session, StepRecord};

/// Returns `true` if so many consecutive runs and attempts have crashed at this point that the same
/// work must not be attempted again.
pub(super) fn is_crash_loop(session: &Session, agent: &AgentDefinition) -> bool {
    session.takeovers() >= agent.limits().max_takeovers
}

/// Returns errors for the calls during which the earlier attempts may have crashed: all calls in
/// progress, or those that an engine attempted too often within runs. Calls that wait for a child
/// or for a human are not included.
pub(super) fn abandoned(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
) -> Vec<ToolFinish> {
    let abandoned = step.in_progress().filter_map(|call| {
        let repeats = step.call(&call.id).map_or(0, |state| state.repeats);
        let tries = session.takeovers().saturating_add(repeats);
        if tries < agent.limits().max_takeovers {
            return None;
        }
        let message = format!(
            "not retried: {tries} processes in a row crashed while the call was open; whether it \
             acted is not known"
        );
        let error = ErrorRecord::new(ErrorCode::CrashLoop, message);
        Some(ToolFinish::without_run(call.id.clone(), ToolOutcome::Error(error)))
    });
    abandoned.collect()
}

/// Returns the outcome of a run that stops because of a crash loop: after the errors for its calls,
/// or instead of the model call.
pub(super) fn outcome(session: &Session, agent: &AgentDefinition) -> Option<RunOutcome> {
    let step = session.closed_step();
    let abandoned: Vec<_> = step
        .into_iter()
        .flat_map(StepRecord::pairs)
        .filter(|(_, state)| {
            let outcome = state.finish.as_ref().map(|finish| &finish.outcome);
            matches!(outcome, Some(ToolOutcome::Error(error)) if error.is(ErrorCode::CrashLoop))
        })
        .map(|(call, _)| format!("{} (`{}`)", call.id, call.name))
        .collect();
    let takeovers = session.takeovers();
    let message = if !abandoned.is_empty() {
        format!("the process crashed repeatedly while it ran {}", abandoned.join(", "))
    } else if is_crash_loop(session, agent) {
        let next = session.last_step() + 1;
        format!(
            "{takeovers} attempts in a row crashed before the reply of step {next} was recorded"
        )
    } else {
        return None;
    };
    Some(RunOutcome::Failed { error: ErrorRecord::new(ErrorCode::CrashLoop, message) })
}
