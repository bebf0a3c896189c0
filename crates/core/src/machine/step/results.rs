//! The tool results that hooks receive, and when they receive them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::iterator::Action;
use crate::agent::{AgentDefinition, Completion};
use crate::event::{Event, ToolFinish, Trigger};
use crate::id::{CallId, SessionId};
use crate::json::Json;
use crate::machine::session::{RunStatus, Session, StepRecord};
use crate::message::ToolCall;
use crate::mutant;
use crate::tool::FINISH_TOOL;

/// A call with its result, as hooks receive it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallResult {
    /// The call as the model made it.
    pub call: ToolCall,
    /// The recorded result.
    pub finish: Arc<ToolFinish>,
    /// The arguments that the call ran with or would have run with.
    pub input: Json,
    /// The kind of call that the result belongs to.
    pub kind: ResultKind,
}

/// The kind of a call that has a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultKind {
    /// A call of a tool, even if no tool of that name exists.
    Tool,
    /// A call of a child: a sub-agent, started or not, or a companion that the call waited for.
    Child {
        /// The name of the child's agent.
        agent: Arc<str>,
        /// The id of the child's session.
        session: SessionId,
    },
    /// A call that completes the turn.
    Finish,
}

/// The results that the hooks of a run have not received yet.
///
/// Hooks receive every result, however it was produced, once no call of the step's phase is open,
/// in call order. If another process records a different result before that, hooks receive the
/// recorded one.
#[derive(Debug, Default)]
pub struct UndeliveredResults {
    waiting: Vec<CallResult>,
    /// The calls of the last step whose results are or were in `waiting`.
    known: BTreeSet<CallId>,
}

impl UndeliveredResults {
    /// Collects the results that a recovering run takes over from a crashed one. Results are
    /// recorded before hooks receive them and before the step is closed, so hooks may not have
    /// received any result of an open step. Hooks may receive a result twice.
    #[must_use]
    pub fn taken_over(session: &Session, agent: &AgentDefinition) -> Self {
        let recovers = session.current_run().is_some_and(|run| run.trigger == Trigger::Recover);
        if recovers { Self::of_open_step(session, agent) } else { Self::default() }
    }

    /// Collects the results of these calls, none of which hooks have received.
    #[must_use]
    pub fn of_calls(session: &Session, agent: &AgentDefinition, calls: &[CallId]) -> Self {
        let mut results = Self::default();
        if let Some(step) = session.open_step() {
            results.note_undelivered(session, agent, step, |call| calls.contains(call));
        }
        results
    }

    /// Collects all recorded results of an open step that hooks may not have received, for a caller
    /// that does not know which were delivered, such as after a work item whose answer was lost.
    /// Hooks may receive a result twice.
    #[must_use]
    pub fn of_open_step(session: &Session, agent: &AgentDefinition) -> Self {
        let mut results = Self::default();
        results.note_open_step(session, agent);
        results
    }

    /// Notes all recorded results of an open step that hooks may not have received, in addition to
    /// the noted ones.
    pub fn note_open_step(&mut self, session: &Session, agent: &AgentDefinition) {
        if let Some(step) = session.open_step() {
            self.note_undelivered(session, agent, step, |_| true);
        }
    }

    /// Notes the results of these calls of the step, except those that an earlier run delivered to
    /// hooks.
    fn note_undelivered(
        &mut self,
        session: &Session,
        agent: &AgentDefinition,
        step: &StepRecord,
        is_selected: impl Fn(&CallId) -> bool,
    ) {
        // A run that ended within this step delivered all results except those of calls it waited
        // for and later ones.
        let suspended =
            session.runs().rev().skip(1).find(|run| run.status != RunStatus::Superseded);
        let on = suspended.and_then(|run| run.suspended.as_deref());
        let on = on.filter(|on| on.step == step.reply.step);
        let calls = on.into_iter().flat_map(|on| on.calls.iter().map(|pending| &pending.call));
        let children =
            on.into_iter().flat_map(|on| on.children.iter().map(|pending| &pending.call));
        let waited: Vec<_> = calls.chain(children).collect();
        let phase = |call: &CallId| phase_of(agent, step, call);
        let suspended_in = waited.iter().filter_map(|call| phase(call)).max();
        // Companion tools run in call order, so those after the call that the run waited for had
        // not run yet.
        let companion = |call: &CallId| phase(call) == Some(Phase::Companions);
        let waited_in = waited.iter().filter(|call| companion(call)).map(|call| call.index()).min();
        for finish in step.calls.iter().filter_map(|call| call.finish.as_ref()) {
            let call = &finish.call;
            let came_later = companion(call) && waited_in.is_some_and(|at| call.index() > at);
            let is_delivered =
                phase(call) <= suspended_in && !waited.contains(&call) && !came_later;
            if !is_delivered && is_selected(call) {
                self.note_one(session, agent, finish);
            }
        }
    }

    /// Returns the calls whose results hooks have not received yet.
    pub fn waiting(&self) -> impl Iterator<Item = &CallId> {
        self.waiting.iter().map(|result| &result.call.id)
    }

    /// Notes the results among these events, which are recorded or about to be.
    pub fn note(&mut self, session: &Session, agent: &AgentDefinition, events: &[Event]) {
        for event in events {
            if let Event::ToolFinished(finish) = event {
                self.note_one(session, agent, finish);
            }
        }
    }

    /// Notes a result that is recorded or about to be.
    pub fn note_one(
        &mut self,
        session: &Session,
        agent: &AgentDefinition,
        finish: &Arc<ToolFinish>,
    ) {
        if self.known.first().is_some_and(|known| known.step() != finish.call.step()) {
            self.known.clear();
        }
        if !self.known.insert(finish.call.clone()) {
            return;
        }
        self.waiting.extend(call_result(session, agent, finish));
    }

    /// Returns `true` if hooks must receive results before this action.
    #[must_use]
    pub fn is_due(&self, next: &Action) -> bool {
        !self.waiting.is_empty() && !is_in_phase(next)
    }

    /// Reads the noted results of an open step again. Another process may have recorded its own result
    /// of a call first, or a conflict may have dropped a decision.
    pub fn refresh(&mut self, session: &Session, agent: &AgentDefinition) {
        let Some(step) = session.open_step() else { return };
        let known = &mut self.known;
        self.waiting.retain_mut(|result| {
            let state = step.call(&result.call.id);
            let Some(finish) = state.and_then(|state| state.finish.as_ref()) else {
                known.remove(&result.call.id);
                return false;
            };
            if !Arc::ptr_eq(&result.finish, finish)
                && let Some(current) = call_result(session, agent, finish)
            {
                *result = current;
            }
            true
        });
    }

    /// Takes the results that hooks receive now, in call order. Returns none while calls of the phase
    /// are open.
    #[must_use]
    pub fn take(&mut self, next: &Action) -> Vec<CallResult> {
        if is_in_phase(next) {
            return Vec::new();
        }
        self.waiting.sort_by_key(|result| (result.call.id.step(), result.call.id.index()));
        let results = std::mem::take(&mut self.waiting);
        if mutant!("hooks-told-twice") { [results.clone(), results].concat() } else { results }
    }
}

/// Returns a call with its result, or `None` if the session's last step has no such call.
fn call_result(
    session: &Session,
    agent: &AgentDefinition,
    finish: &Arc<ToolFinish>,
) -> Option<CallResult> {
    let call = session.tool_call(&finish.call)?;
    let step = session.open_step().or(session.closed_step());
    let edited = step.and_then(|step| step.input(&call.id));
    let input = finish.input.clone().or(edited);
    let own = || call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
    Some(CallResult {
        finish: Arc::clone(finish),
        input: input.unwrap_or_else(own),
        kind: result_kind(session, agent, call, finish),
        call: call.clone(),
    })
}

/// The phase of a step in which a call runs: first tools and sub-agents, concurrently; then finish
/// tools, which are never pending; then companions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Concurrent,
    Finish,
    Companions,
}

fn phase_of(agent: &AgentDefinition, step: &StepRecord, call: &CallId) -> Option<Phase> {
    let call = step.tool_call(call)?;
    Some(if agent.has_companion_tool(&call.name) {
        Phase::Companions
    } else if agent.tool(&call.name).is_some_and(|tool| tool.is_finish()) {
        Phase::Finish
    } else {
        Phase::Concurrent
    })
}

/// Returns `true` if concurrent calls are still open.
const fn is_in_phase(next: &Action) -> bool {
    matches!(next, Action::StartChildren(_) | Action::RunTools { .. })
}

fn result_kind(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
    finish: &ToolFinish,
) -> ResultKind {
    if *call.name == *FINISH_TOOL && *agent.completion() == Completion::Finish {
        return ResultKind::Finish;
    }
    let step = session.open_step().or(session.closed_step());
    let child = step.and_then(|step| step.call(&call.id)).and_then(|call| call.child.as_ref());
    match (agent.sub_agent(&call.name), child) {
        (_, Some(child)) if finish.child.is_some() => ResultKind::Child {
            agent: Arc::clone(&child.start.agent),
            session: child.start.session.clone(),
        },
        (Some(sub_agent), _) => ResultKind::Child {
            agent: Arc::clone(sub_agent.agent().name()),
            session: SessionId::of_call(session.id(), &call.id),
        },
        (None, _) => ResultKind::Tool,
    }
}
