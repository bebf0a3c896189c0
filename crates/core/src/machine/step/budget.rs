//! Budget checks: whether the model may be called again, which tool calls may run, and the budgets
//! of children.

use super::synthetic_results::error;
use crate::agent::AgentDefinition;
use crate::budget::{Budget, Exceeded};
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::ToolFinish;
use crate::machine::session::{CallRecord, Session, StepRecord};
use crate::message::ToolCall;

/// Returns the error that forbids another model call, or `None` if the budget allows one.
pub(super) fn exceeded(session: &Session, agent: &AgentDefinition) -> Option<ErrorRecord> {
    let budget = session.budget(agent);
    if budget.is_unlimited() {
        return None;
    }
    let spent = session.spent();
    let reached = budget.exceeded(&spent).or_else(|| {
        // Reaching the limit of tool calls does not end the run, because the model can still answer
        // without tools. The run ends when the model requests more calls than are left.
        let requested = session.is_short_of_tool_calls();
        requested.then(|| budget.tool_calls_exceeded(&spent)).flatten()
    });
    reached.as_ref().map(Exceeded::error)
}

/// Returns `true` if the next step is the last that the budget allows.
pub(super) fn is_last(session: &Session, agent: &AgentDefinition) -> bool {
    let steps = session.budget(agent).steps;
    steps.is_some_and(|allowed| session.spent().steps + 1 >= allowed)
}

/// Returns errors for the open calls that are not executed because the budget is exhausted.
///
/// Calls that complete the turn still run as long as tool calls are left, because the answer is
/// already paid for. After a takeover, no call of the step is refused, because it is unknown which
/// of them have already run.
pub(super) fn refusals(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
) -> Vec<ToolFinish> {
    let budget = session.budget(agent);
    if budget.is_unlimited() || step.runs > 1 {
        return Vec::new();
    }
    let open = || step.pairs().filter(|(_, state)| is_new(state));
    if open().next().is_none() {
        return Vec::new();
    }
    let spent = session.spent();
    if let Some(reached) = budget.exceeded(&spent) {
        let message = format!("not run: the budget is used up: {reached}");
        return open()
            .filter(|(call, state)| state.pending().is_none() && !is_finish(agent, call))
            .map(|(call, _)| error(call, ErrorCode::BudgetExceeded, message.clone()))
            .collect();
    }
    let Some(allowed) = budget.tool_calls else { return Vec::new() };
    let taken = spent.tool_calls.saturating_add(session.reserved().tool_calls);
    let left = usize::try_from(allowed.saturating_sub(taken)).unwrap_or(usize::MAX);
    open()
        .filter(|(call, _)| runs_here(agent, call))
        .skip(left)
        .filter(|(_, state)| state.pending().is_none())
        .map(|(call, _)| {
            let message = format!("not run: the budget of {allowed} tool calls is used up");
            error(call, ErrorCode::BudgetExceeded, message)
        })
        .collect()
}

/// Returns the budget of each of `children` children that start together: equal shares of the
/// remaining budget. The parent keeps one share, so that its model can still react to children that
/// exhaust theirs.
pub(super) fn allowance(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
    children: usize,
) -> Option<Budget> {
    let budget = session.budget(agent);
    if budget.is_unlimited() {
        return None;
    }
    let mut taken = session.spent();
    taken += session.reserved();
    // This step's other new calls will run as well.
    let own = step.pairs().filter(|(call, state)| is_new(state) && runs_here(agent, call)).count();
    taken.tool_calls = taken.tool_calls.saturating_add(own as u64);
    Some(budget.share(&taken, children as u64 + 1))
}

/// Returns the budget of a companion that is about to start.
pub(super) fn companion_allowance(session: &Session, agent: &AgentDefinition) -> Option<Budget> {
    allowance(session, agent, session.open_step()?, 1)
}

/// Returns `true` if no part of the call has started.
fn is_new(state: &CallRecord) -> bool {
    state.finish.is_none() && state.child.is_none() && state.started.is_none()
}

fn is_finish(agent: &AgentDefinition, call: &ToolCall) -> bool {
    agent.tool(&call.name).is_some_and(|tool| tool.finish)
}

fn runs_here(agent: &AgentDefinition, call: &ToolCall) -> bool {
    agent.tool(&call.name).is_some_and(|tool| !tool.is_client())
}
