//! The next action as a function of the session.

use std::sync::Arc;

use super::budget;
use super::correction::next_correction;
use super::crash_loop;
use super::iterator::{Action, CallTask, ChildTask};
use super::pending_calls::{Gates, gates, suspension, unaccounted};
use super::synthetic_results::answers;
use super::turn_outcome::{TurnOutcome, turn_outcome};
use crate::agent::{AgentDefinition, Completion};
use crate::event::RunOutcome;
use crate::id::SessionId;
use crate::machine::session::{Session, StepRecord};
use crate::message::ToolCall;
use crate::mutant;
use crate::tool::EffectClass;

pub(super) fn next_step(session: &Session, agent: &AgentDefinition) -> Action {
    if let Some(request) = session.abort_request() {
        return Action::End(RunOutcome::Aborted { reason: request.reason.clone() });
    }
    if let Some(outcome) = crash_loop::outcome(session, agent) {
        return Action::End(outcome);
    }
    let queued = session.queued_messages();
    match turn_outcome(session, agent) {
        // A turn is not complete while messages are queued.
        Some(TurnOutcome::End(RunOutcome::Completed { .. })) if !queued.is_empty() => {}
        Some(TurnOutcome::End(outcome)) => return Action::End(outcome),
        _ => {}
    }
    if let Some(request) = session.interrupt_request().filter(|_| !mutant!("interrupt-ignored")) {
        return Action::End(RunOutcome::Interrupted { reason: request.reason.clone() });
    }
    // The model can only continue a paused reply if no message follows it.
    if !queued.is_empty() && !session.ends_with_paused_reply() {
        return Action::TakeMessages(
            queued.iter().map(|message| message.request.clone()).collect(),
        );
    }
    if let Some(error) = budget::exceeded(session, agent) {
        return Action::End(RunOutcome::Failed { error });
    }
    let corrected = session.closed_step().is_some_and(|step| step.correction.is_some());
    // In the last step of a turn, the results of tools would be unused. A finish tool of the user
    // has effects, so a limit is no reason to force it.
    let last = *agent.completion() == Completion::Finish
        && (session.turn_steps() + 1 >= agent.limits().max_steps
            || budget::is_last(session, agent));
    Action::CallModel { step: session.last_step() + 1, force_completion: corrected || last }
}

/// Returns the next action within a step. `known` contains the gates of the reply that are known.
/// With `is_fit`, the open calls have passed their checks.
pub(super) fn next_in_step(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
    known: Option<&Gates>,
    is_fit: bool,
) -> Action {
    let waited = unaccounted(session, step);
    if !waited.is_empty() {
        return Action::RecordWaits(waited);
    }
    let answers = answers(session, agent, step, is_fit);
    if !answers.is_empty() {
        return Action::RecordResults(answers);
    }
    let refused = budget::refusals(session, agent, step);
    if !refused.is_empty() {
        return Action::RecordResults(refused);
    }
    let found;
    let gates = match known {
        Some(gates) if is_fit => gates,
        known => {
            found = gates(session, agent, step, known);
            &found
        }
    };
    let open = open_calls(agent, step, gates);
    let tasks = |calls: &[&ToolCall]| -> Vec<CallTask> {
        calls.iter().map(|call| task(agent, step, call)).collect()
    };
    let at_once = agent.limits().tool_concurrency;
    // A child that waits for a human does not count against the concurrency limit.
    let room = at_once.saturating_sub(open.running.len()).min(open.unstarted.len());
    if let Some(starting) = open.unstarted.get(..room).filter(|starting| !starting.is_empty()) {
        let mut children = child_tasks(session, step, starting);
        // Children that start later get the same share.
        let allowance = budget::allowance(session, agent, step, open.unstarted.len());
        children.iter_mut().for_each(|child| child.allowance = allowance);
        return Action::StartChildren(children);
    }
    if !open.ready.is_empty() || !open.running.is_empty() {
        let waited_for = open.running.get(..at_once).unwrap_or(&open.running);
        let (calls, children) = (tasks(&open.ready), child_tasks(session, step, waited_for));
        return Action::RunTools { calls, children };
    }
    if open.waits {
        let on = Arc::new(suspension(session, agent, step, gates));
        // Approvals and client results that were not requested yet are requested first.
        return Action::End(match session.interrupt_request() {
            Some(request) if on.new_calls().next().is_none() => {
                RunOutcome::Interrupted { reason: request.reason.clone() }
            }
            _ => RunOutcome::Suspended { on },
        });
    }
    // Finish tools run one at a time, after all other calls have their results.
    if let Some(finish) = open.finish {
        return Action::RunFinishTool(task(agent, step, finish));
    }
    if !open.companions.is_empty() {
        let next = open.companions.get(..at_once).unwrap_or(&open.companions);
        return Action::RunCompanions(tasks(next));
    }
    if let Some(message) = next_correction(session, agent, step) {
        return Action::Correct(message);
    }
    Action::CloseStep(step.reply.step)
}

/// The calls of a step that have no result, grouped by what to do with them.
#[derive(Default)]
struct Open<'a> {
    /// Sub-agent calls whose child has not started.
    unstarted: Vec<&'a ToolCall>,
    /// Tool calls that can run.
    ready: Vec<&'a ToolCall>,
    /// Calls whose child is running, as far as is known.
    running: Vec<&'a ToolCall>,
    /// Whether a call waits for a human, or for a child that does.
    waits: bool,
    /// The first call of a finish tool.
    finish: Option<&'a ToolCall>,
    /// Calls of companion tools.
    companions: Vec<&'a ToolCall>,
}

fn open_calls<'a>(agent: &AgentDefinition, step: &'a StepRecord, gates: &Gates) -> Open<'a> {
    let mut open = Open::default();
    for (call, state) in step.pairs().filter(|(_, state)| state.finish.is_none()) {
        match &state.child {
            Some(child) if child.waits => open.waits = true,
            Some(_) => open.running.push(call),
            None if agent.sub_agent(&call.name).is_some() => open.unstarted.push(call),
            None if agent.has_companion_tool(&call.name) => open.companions.push(call),
            None if gates.kind(step, call).is_some() => open.waits = true,
            None if agent.tool(&call.name).is_some_and(|tool| tool.finish) => {
                open.finish = open.finish.or(Some(call));
            }
            None => open.ready.push(call),
        }
    }
    open
}

fn child_tasks(session: &Session, step: &StepRecord, calls: &[&ToolCall]) -> Vec<ChildTask> {
    let task = |call: &&ToolCall| {
        let started = step.call(&call.id).and_then(|state| state.child.as_ref());
        let known = started.map(|child| child.start.session.clone());
        ChildTask {
            call: call.id.clone(),
            session: known.unwrap_or_else(|| match session.runs().count() {
                runs if mutant!("child-renamed") => {
                    SessionId::from(format!("{}-sub-{}-{runs}", session.id(), call.id))
                }
                _ => SessionId::of_call(session.id(), &call.id),
            }),
            allowance: None,
        }
    };
    calls.iter().map(task).collect()
}

fn task(agent: &AgentDefinition, step: &StepRecord, call: &ToolCall) -> CallTask {
    let at_most_once =
        agent.tool(&call.name).is_some_and(|tool| tool.effect_class() == EffectClass::AtMostOnce);
    let started = step.call(&call.id).and_then(|state| state.started.as_ref());
    let started = started.filter(|_| at_most_once);
    CallTask {
        call: call.id.clone(),
        // Each start of a call is a separate attempt, even within one run.
        attempt: started.map_or(step.runs, |started| step.runs.max(started.attempt + 1)),
        at_most_once,
        in_doubt: started.is_some() && !mutant!("doubt-ignored"),
    }
}
