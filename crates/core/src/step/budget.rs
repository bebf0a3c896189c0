//! What budgets allow: whether the model may be asked again, which calls may run, and what children
//! get.

use super::synthetic_results::error;
use crate::agent::AgentDefinition;
use crate::budget::{Budget, Exceeded};
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::ToolFinish;
use crate::message::ToolCall;
use crate::session::{OpenCall, Session, StepRecord};

/// Why the model may not be asked again, if it may not.
pub(super) fn exceeded(session: &Session, agent: &AgentDefinition) -> Option<ErrorRecord> {
    let budget = session.budget(agent);
    if budget.is_unlimited() {
        return None;
    }
    let spent = session.spent();
    let reached = budget.exceeded(&spent).or_else(|| {
        // The model may do without tools as long as it asks for none beyond the limit.
        let asked = session.is_short_of_tool_calls();
        asked.then(|| budget.tool_calls_exceeded(&spent)).flatten()
    });
    reached.as_ref().map(Exceeded::error)
}

/// Whether the next step is the last that the budget allows.
pub(super) fn is_last(session: &Session, agent: &AgentDefinition) -> bool {
    let steps = session.budget(agent).steps;
    steps.is_some_and(|allowed| session.spent().steps + 1 >= allowed)
}

/// The open calls that are not run because the budget is used up.
///
/// What completes the turn is carried out all the same, as long as there are tool calls left: the
/// answer is paid for. A step that was taken over is finished as it was begun, for nobody knows
/// what of it has run already.
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
    let taken = spent.tool_calls.saturating_add(session.set_aside().tool_calls);
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

/// What each of so many children that begin together may use: equal parts of what is left, one of
/// which stays with the caller, so that its model can be told of children that ran out.
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
    taken += session.set_aside();
    // The calls beside them will run.
    let own = step.pairs().filter(|(call, state)| is_new(state) && runs_here(agent, call)).count();
    taken.tool_calls = taken.tool_calls.saturating_add(own as u64);
    Some(budget.share(&taken, children as u64 + 1))
}

/// What a companion that begins may use.
pub(super) fn companion_allowance(session: &Session, agent: &AgentDefinition) -> Option<Budget> {
    allowance(session, agent, session.open_step()?, 1)
}

/// Whether nothing of the call has begun.
fn is_new(state: &OpenCall) -> bool {
    state.finish.is_none() && state.child.is_none() && state.started.is_none()
}

fn is_finish(agent: &AgentDefinition, call: &ToolCall) -> bool {
    agent.tool(&call.name).is_some_and(|tool| tool.finish)
}

fn runs_here(agent: &AgentDefinition, call: &ToolCall) -> bool {
    agent.tool(&call.name).is_some_and(|tool| !tool.is_client())
}
