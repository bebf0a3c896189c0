//! Which results hooks are to be told of, and when.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::iterator::Action;
use crate::agent::{AgentDefinition, Completion};
use crate::event::{Event, ToolFinish, Trigger};
use crate::id::{CallId, SessionId};
use crate::json::Json;
use crate::message::ToolCall;
use crate::mutant;
use crate::session::{RunStatus, Session, StepRecord};
use crate::tool::FINISH_TOOL;

/// A call that has its result, as hooks are told of it.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// The call.
    pub call: ToolCall,
    /// The result.
    pub finish: Arc<ToolFinish>,
    /// The arguments that it ran with, or would have.
    pub input: Json,
    /// What it is a result of.
    pub of: ResultOf,
}

/// What a call was made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultOf {
    /// A tool, whether there is one of that name or not.
    Tool,
    /// A child: a sub-agent, begun or not, or a companion that was waited for to its end.
    Child {
        /// Its agent's name.
        agent: Arc<str>,
        /// Its session.
        session: SessionId,
    },
    /// The completion of the turn.
    Finish,
}

/// The results that the hooks of a run are still to be told of.
///
/// Every call is told of once it has its result, however it came by it: when no call of the step's
/// phase is open any more, and in call order.
#[derive(Debug, Default)]
pub struct Results {
    waiting: Vec<CallResult>,
    /// The calls of the last step that are among them, or were.
    known: BTreeSet<CallId>,
}

impl Results {
    /// Those that a run takes over from one that did not end. Results are on record before hooks are
    /// told of them and before the step is closed, so every result of an open step may be untold: hooks
    /// may be told of it again.
    #[must_use]
    pub fn taken_over(session: &Session, agent: &AgentDefinition) -> Self {
        let recovers = session.current_run().is_some_and(|run| run.trigger == Trigger::Recover);
        if recovers { Self::left_before(session, agent) } else { Self::default() }
    }

    /// Those that these calls left, each carried out and recorded by itself.
    #[must_use]
    pub fn left_by(session: &Session, agent: &AgentDefinition, calls: &[CallId]) -> Self {
        let mut results = Self::default();
        if let Some(step) = session.open_step() {
            results.note_untold(session, agent, step, |call| calls.contains(call));
        }
        results
    }

    /// Those of an open step that hooks may not have been told of: all that are recorded, if it is not
    /// known of which hooks were told, as after a part whose answer was lost. Hooks may be told of them again.
    #[must_use]
    pub fn left_before(session: &Session, agent: &AgentDefinition) -> Self {
        let mut results = Self::default();
        if let Some(step) = session.open_step() {
            results.note_untold(session, agent, step, |_| true);
        }
        results
    }

    /// Notes the results of these calls of the step, but for those that an earlier run told of.
    fn note_untold(
        &mut self,
        session: &Session,
        agent: &AgentDefinition,
        step: &StepRecord,
        is_asked_for: impl Fn(&CallId) -> bool,
    ) {
        // A run that ended in this step told of all but of what it waited for, and of what came later.
        let rested = session.runs().rev().skip(1).find(|run| run.status != RunStatus::Superseded);
        let on = rested.and_then(|run| run.suspended.as_deref());
        let on = on.filter(|on| on.step == step.reply.step);
        let calls = on.into_iter().flat_map(|on| on.calls.iter().map(|it| &it.call));
        let children = on.into_iter().flat_map(|on| on.children.iter().map(|it| &it.call));
        let waited: Vec<_> = calls.chain(children).collect();
        let phase = |call: &CallId| phase_of(agent, step, call);
        let rested_in = waited.iter().filter_map(|call| phase(call)).max();
        // Companion tools run in call order: those after the one that the run waited in had not run yet.
        let companion = |call: &CallId| phase(call) == Some(Phase::Companions);
        let waited_in = waited.iter().filter(|call| companion(call)).map(|call| call.index()).min();
        for finish in step.calls.iter().filter_map(|call| call.finish.as_ref()) {
            let call = &finish.call;
            let came_later = companion(call) && waited_in.is_some_and(|at| call.index() > at);
            let is_told = phase(call) <= rested_in && !waited.contains(&call) && !came_later;
            if !is_told && is_asked_for(call) {
                self.note_one(session, agent, finish);
            }
        }
    }

    /// The calls whose results hooks were not told of yet.
    pub fn waiting(&self) -> impl Iterator<Item = &CallId> {
        self.waiting.iter().map(|result| &result.call.id)
    }

    /// Notes the results among these events, which are about to be recorded or are.
    pub fn note(&mut self, session: &Session, agent: &AgentDefinition, events: &[Event]) {
        for event in events {
            if let Event::ToolFinished(finish) = event {
                self.note_one(session, agent, finish);
            }
        }
    }

    fn note_one(&mut self, session: &Session, agent: &AgentDefinition, finish: &Arc<ToolFinish>) {
        if self.known.first().is_some_and(|known| known.step() != finish.call.step()) {
            self.known.clear();
        }
        if !self.known.insert(finish.call.clone()) {
            return;
        }
        let Some(call) = session.tool_call(&finish.call) else { return };
        let step = session.open_step().or(session.closed_step());
        let edited = step.and_then(|step| step.input(&call.id));
        let input = finish.input.clone().or(edited);
        let own = || call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
        self.waiting.push(CallResult {
            finish: Arc::clone(finish),
            input: input.unwrap_or_else(own),
            of: result_of(session, agent, call, finish),
            call: call.clone(),
        });
    }

    /// Returns `true` if hooks are to be told of results before this action.
    #[must_use]
    pub fn is_due(&self, next: &Action) -> bool {
        !self.waiting.is_empty() && !is_in_phase(next)
    }

    /// Those to be told of now, in call order; none while calls of the phase are open.
    #[must_use]
    pub fn take(&mut self, next: &Action) -> Vec<CallResult> {
        if is_in_phase(next) {
            return Vec::new();
        }
        self.waiting.sort_by_key(|result| (result.call.id.step(), result.call.id.index()));
        if mutant!("hooks-told-twice") {
            return self.waiting.clone();
        }
        std::mem::take(&mut self.waiting)
    }
}

/// When in its step a call is carried out: tools and sub-agents side by side, then finish tools, none of
/// which waits for people, then companions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    SideBySide,
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
        Phase::SideBySide
    })
}

/// Whether calls that run side by side are still open.
const fn is_in_phase(next: &Action) -> bool {
    matches!(next, Action::StartChildren(_) | Action::RunTools { .. })
}

fn result_of(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
    finish: &ToolFinish,
) -> ResultOf {
    if *call.name == *FINISH_TOOL && *agent.completion() == Completion::Finish {
        return ResultOf::Finish;
    }
    let step = session.open_step().or(session.closed_step());
    let child = step.and_then(|step| step.call(&call.id)).and_then(|call| call.child.as_ref());
    match (agent.sub_agent(&call.name), child) {
        (_, Some(child)) if finish.child.is_some() => ResultOf::Child {
            agent: Arc::clone(&child.start.agent),
            session: child.start.session.clone(),
        },
        (Some(sub_agent), _) => ResultOf::Child {
            agent: Arc::clone(sub_agent.agent().name()),
            session: SessionId::of_call(session.id(), &call.id),
        },
        (None, _) => ResultOf::Tool,
    }
}
