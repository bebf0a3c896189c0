//! The sans-I/O state machine that drivers run: the next action as a function of the events.

use std::sync::Arc;

use super::next::{next_in_step, next_step};
use super::pending_calls::{Gates, gates, wait_usage};
use super::state_repair::repair_state;
use super::synthetic_results::heal;
use crate::agent::AnyAgent;
use crate::budget::Budget;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{Event, MERGED_BY, RunOutcome, ToolFinish, ToolOutcome};
use crate::id::{AppendId, CallId, RequestId, SessionId};
use crate::machine::session::{Session, StepRecord};
use crate::message::{AssistantMessage, UserMessage};
use crate::state::Patch;

/// The next action of a driver. An action is small and refers to payloads in the session by id.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// There is no current run.
    Idle,
    /// Effect: make the model call of this step.
    CallModel {
        /// The number of the step.
        step: u32,
        /// Whether the model has to call the completion tool, because a correction asked for it, or
        /// because `__finish__` completes the turn and this is the last step of the turn.
        force_completion: bool,
    },
    /// Effect: start the child sessions of these calls and record that. Together with the running
    /// children that do not wait for a human, they do not exceed `tool_concurrency`. The remaining
    /// children start when these have ended.
    StartChildren(Vec<ChildTask>),
    /// Effect: run these calls concurrently (phase 1) and wait for the children. The start of a
    /// call that is [at most once](CallTask::at_most_once) is recorded before it runs.
    RunTools {
        /// The calls to run.
        calls: Vec<CallTask>,
        /// The children to wait for: those that are not known to be suspended.
        children: Vec<ChildTask>,
    },
    /// Effect: run this finish tool, which sees the state after phase 1 (phase 2). Its start is
    /// recorded like that of a call of phase 1.
    RunFinishTool(CallTask),
    /// Effect: run these calls of companion tools, in this order (phase 3).
    RunCompanions(Vec<CallTask>),
    /// Decision: record how long these calls were pending.
    RecordWaits(Vec<CallId>),
    /// Decision: record results for these calls without running anything.
    RecordResults(Vec<ToolFinish>),
    /// Decision: tell the model that its answer does not complete the turn.
    Correct(UserMessage),
    /// Decision: make the state fit its type again after concurrent changes.
    RepairState(Patch),
    /// Decision: close the step.
    CloseStep(u32),
    /// Decision: move these queued messages into the transcript.
    TakeMessages(Vec<RequestId>),
    /// Decision: end the run. The outcome may be that the run is suspended. Deadlines are computed
    /// from the session's [clock](crate::session::SessionOverview::clock), so update the clock
    /// first.
    End(RunOutcome),
    /// Decision: record results for the calls that an imported log left open.
    Heal(Vec<(CallId, ToolOutcome)>),
}

impl Action {
    /// Returns `true` if the action is a decision: it is only recorded, by
    /// [`decide`](StepIterator::decide) and the journal, and needs no effect.
    #[must_use]
    pub const fn is_decision(&self) -> bool {
        matches!(
            self,
            Self::RecordWaits(_)
                | Self::RecordResults(_)
                | Self::Correct(_)
                | Self::RepairState(_)
                | Self::CloseStep(_)
                | Self::TakeMessages(_)
                | Self::End(_)
                | Self::Heal(_)
        )
    }
}

impl Action {
    /// Returns `true` if all concurrent calls have their results, so that the next action sees the
    /// state with all their changes.
    const fn ends_phase(&self) -> bool {
        matches!(
            self,
            Self::RunFinishTool(_)
                | Self::RunCompanions(_)
                | Self::Correct(_)
                | Self::CloseStep(_)
                | Self::End(_)
        )
    }
}

/// A call to run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallTask {
    /// The id of the call.
    pub call: CallId,
    /// The number of this attempt, from 1. It includes attempts of earlier runs.
    pub attempt: u32,
    /// Whether the call must not run twice. The process that runs it must append
    /// [`ToolStarted`](Event::ToolStarted) right before it runs, not while the call waits in a
    /// queue.
    pub at_most_once: bool,
    /// Whether the call must not run twice and its start is recorded, so that it may have run. Call
    /// `reconcile` to find out.
    pub in_doubt: bool,
}

/// The results of the checks of a reply's calls.
#[derive(Debug, Clone)]
struct CheckedReply {
    reply: Arc<AssistantMessage>,
    gates: Gates,
    /// Whether all open calls passed the checks.
    is_fit: bool,
}

/// A child to start or to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildTask {
    /// The id of the call that the child is for.
    pub call: CallId,
    /// The id of the child's session.
    pub session: SessionId,
    /// The budget of a child that is about to start.
    pub allowance: Option<Budget>,
}

/// The state machine over the step functions. The same events and agent always give the same
/// action.
#[derive(Debug, Clone)]
pub struct StepIterator {
    agent: AnyAgent,
    session: Session,
    /// The last reply whose calls were checked, and which of them are pending. It caches a check
    /// that is needed many times per step.
    checked: Option<CheckedReply>,
    /// The next action that `decide` found, valid until the session changes.
    found: Option<Action>,
}

impl StepIterator {
    /// Creates the state machine at the end of a session's log.
    #[must_use]
    pub fn new(agent: AnyAgent, session: Session) -> Self {
        Self { agent, session, checked: None, found: None }
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the session and drops the state machine.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Applies the acknowledgement of an append. It does not affect the next action, except through
    /// the time that has passed.
    pub(crate) fn acknowledge(&mut self, append: AppendId, at: Timestamp) {
        self.session.acknowledge(append, at);
        if self.session.budget(&self.agent).wall_time_ms.is_some() {
            self.found = None;
        }
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.found = None;
        &mut self.session
    }

    /// Returns the session to roll it back. Calls that were refused are open again, so they have to be
    /// checked again.
    pub(crate) fn session_to_roll_back(&mut self) -> &mut Session {
        if let Some(checked) = &mut self.checked {
            checked.is_fit = false;
        }
        self.session_mut()
    }

    /// Returns the agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// Returns the next action. The call has no side effect.
    #[must_use]
    pub fn next(&self) -> Action {
        self.found.clone().unwrap_or_else(|| self.find())
    }

    /// Returns the outcome of the run if the next action ends it.
    #[must_use]
    pub fn pending_outcome(&self) -> Option<RunOutcome> {
        match &self.found {
            Some(Action::End(outcome)) => Some(outcome.clone()),
            Some(_) => None,
            None => match self.find() {
                Action::End(outcome) => Some(outcome),
                _ => None,
            },
        }
    }

    fn find(&self) -> Action {
        let (session, agent) = (&self.session, &*self.agent);
        if session.current_run().is_none() {
            return Action::Idle;
        }
        if session.needs_heal() {
            return Action::Heal(heal(session));
        }
        match session.open_step() {
            Some(step) => {
                let checked = self.checked_reply(step);
                let is_fit = checked.is_some_and(|checked| checked.is_fit);
                let known = checked.map(|checked| &checked.gates);
                let next = next_in_step(session, agent, step, known, is_fit);
                let repair = if next.ends_phase() { repair_state(session, agent) } else { None };
                repair.map_or(next, Action::RepairState)
            }
            None => next_step(session, agent),
        }
    }

    /// Applies the events of an effect.
    ///
    /// # Errors
    /// Returns an error if an event is not legal here. The events before it stay applied.
    pub fn supply(&mut self, events: &[Event]) -> Result<()> {
        let run = self.session.current_run().map(|run| run.id.clone());
        let session = self.session_mut();
        for event in events {
            session.apply(event, run.as_ref())?;
        }
        Ok(())
    }

    /// Makes every decision up to the next effect or the end of the run, and returns the events
    /// that record them. The driver ends the run itself, because hooks run first.
    ///
    /// # Errors
    /// Returns an error if a decision is not legal, which is a bug.
    pub fn decide(&mut self) -> Result<Vec<Event>> {
        self.decide_while(|_| true)
    }

    /// Makes only the decisions that answer calls, and returns the events that record them. Hooks
    /// receive results before the step is closed.
    pub(crate) fn decide_results(&mut self) -> Result<Vec<Event>> {
        self.decide_while(|action| {
            matches!(action, Action::RecordWaits(_) | Action::RecordResults(_))
        })
    }

    fn decide_while(&mut self, goes_on: fn(&Action) -> bool) -> Result<Vec<Event>> {
        let mut decided = Vec::new();
        loop {
            let step = self.session.open_step().map_or(0, |step| step.reply.step);
            let found = self.find();
            if !goes_on(&found) {
                return Ok(decided);
            }
            let events = match found {
                Action::RecordWaits(calls) => wait_usage(&self.session, &calls),
                Action::RecordResults(results) => results.into_iter().map(Event::from).collect(),
                Action::Correct(message) => vec![Event::CorrectionSent { step, message }],
                Action::RepairState(patch) => {
                    vec![Event::StateChanged { patch, by: MERGED_BY.to_owned() }]
                }
                Action::CloseStep(step) => vec![Event::StepClosed { step }],
                Action::Heal(results) => vec![Event::HistoryHealed { results }],
                Action::TakeMessages(requests) => vec![Event::MessagesTaken { requests }],
                found => {
                    // The action is not an answer, so no call was refused.
                    self.checked = self.session.open_step().and_then(|step| self.check(step));
                    self.found = Some(found);
                    return Ok(decided);
                }
            };
            self.supply(&events)?;
            decided.extend(events);
        }
    }

    /// Returns the cached checks of the reply, or `None` if its calls have not been checked.
    fn checked_reply(&self, step: &StepRecord) -> Option<&CheckedReply> {
        let reply = step.reply.message.as_ref()?;
        self.checked.as_ref().filter(|checked| Arc::ptr_eq(&checked.reply, reply))
    }

    fn check(&self, step: &StepRecord) -> Option<CheckedReply> {
        let reply = step.reply.message.clone()?;
        let gates = match self.checked_reply(step) {
            Some(known) if known.is_fit => known.gates.clone(),
            known => {
                let known = known.map(|known| &known.gates);
                gates(&self.session, &self.agent, step, known)
            }
        };
        Some(CheckedReply { reply, gates, is_fit: true })
    }
}
