//! Runs, and tries of their parts, that stop without a result one after the other: the last one gives up.

use crate::agent::AgentDefinition;
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{RunOutcome, ToolFinish, ToolOutcome};
use crate::session::{Session, StepRecord};

/// Returns `true` if so many runs and tries have stopped where this one stands that it must not try the
/// same again.
pub(super) fn is_crash_loop(session: &Session, agent: &AgentDefinition) -> bool {
    session.takeovers() >= agent.limits().max_takeovers
}

/// The answers to the calls that the tries before may have stopped over: to all that are in progress, or to
/// those that an engine tried too often within runs. A call that waits for a child or for a human is not
/// among them.
pub(super) fn given_up(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
) -> Vec<ToolFinish> {
    let given_up = step.in_progress().filter_map(|call| {
        let repeats = step.call(&call.id).map_or(0, |state| state.repeats);
        let tries = session.takeovers().saturating_add(repeats);
        if tries < agent.limits().max_takeovers {
            return None;
        }
        let message = format!(
            "not tried again: {tries} processes in a row stopped while the call was open; whether it \
             acted is not known"
        );
        let error = ErrorRecord::new(ErrorCode::CrashLoop, message);
        Some(ToolFinish::without_run(call.id.clone(), ToolOutcome::Error(error)))
    });
    given_up.collect()
}

/// The end of a run that gives up: after the answers to its calls, or in place of the model call.
pub(super) fn outcome(session: &Session, agent: &AgentDefinition) -> Option<RunOutcome> {
    let step = session.closed_step();
    let given_up: Vec<_> = step
        .into_iter()
        .flat_map(StepRecord::pairs)
        .filter(|(_, state)| {
            let outcome = state.finish.as_ref().map(|finish| &finish.outcome);
            matches!(outcome, Some(ToolOutcome::Error(error)) if error.is(ErrorCode::CrashLoop))
        })
        .map(|(call, _)| format!("{} (`{}`)", call.id, call.name))
        .collect();
    let takeovers = session.takeovers();
    let message = if !given_up.is_empty() {
        format!("try after try stopped without a result of the calls {}", given_up.join(", "))
    } else if is_crash_loop(session, agent) {
        let next = session.last_step() + 1;
        format!("{takeovers} tries in a row stopped before the reply of step {next} was recorded")
    } else {
        return None;
    };
    Some(RunOutcome::Failed { error: ErrorRecord::new(ErrorCode::CrashLoop, message) })
}
