//! The sans-I/O machine that drivers turn: what to do next, as a function of the events.

use std::sync::Arc;

use super::next::{mend_state, next_in_step, next_step};
use super::pending_calls::{Gates, gates, wait_usage};
use super::synthetic_results::heal;
use crate::agent::AnyAgent;
use crate::budget::Budget;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{BY_MERGE, Event, RunOutcome, ToolFinish, ToolOutcome};
use crate::id::{AppendId, CallId, RequestId, SessionId};
use crate::message::{AssistantMessage, UserMessage};
use crate::session::{Session, StepRecord};
use crate::state::Patch;

/// What to do next. Small, and made of ids: payloads stay in the session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// No run is current.
    Idle,
    /// Effect: make the model call of this step.
    CallModel {
        /// The step.
        step: u32,
        /// Whether the model has to call the completion tool: it was told to, or it is `__finish__`
        /// and this is the last step that the turn may take.
        force_completion: bool,
    },
    /// Effect: begin the sessions of these calls' children, and record that. Together with those that
    /// are under way and do not wait for people they are at most `tool_concurrency`; the others follow
    /// when these have ended.
    StartChildren(Vec<ChildTask>),
    /// Effect: run these side by side (phase 1), and wait for the children among them. The start of a call
    /// that is [at most once](CallTask::at_most_once) is recorded before it runs.
    RunTools {
        /// The calls.
        calls: Vec<CallTask>,
        /// The children that are not known to wait.
        children: Vec<ChildTask>,
    },
    /// Effect: run this finish tool, which sees the state of phase 1 (phase 2). Its start is recorded
    /// like that of a call of phase 1.
    RunFinishTool(CallTask),
    /// Effect: carry out these calls of companion tools, in this order (phase 3).
    RunCompanions(Vec<CallTask>),
    /// Decision: record how long these calls waited for people.
    Account(Vec<CallId>),
    /// Decision: answer these calls without running anything.
    Answer(Vec<ToolFinish>),
    /// Decision: tell the model that its answer does not complete the turn.
    Correct(UserMessage),
    /// Decision: make the state fit its type, after changes that were made side by side.
    MendState(Patch),
    /// Decision: close the step.
    CloseStep(u32),
    /// Decision: let these queued messages into the transcript.
    TakeMessages(Vec<RequestId>),
    /// Decision: end the run. It may be that it has to wait: deadlines are counted from the
    /// session's [clock](crate::session::SessionOverview::clock), so let it know the time first.
    End(RunOutcome),
    /// Decision: answer the calls that an imported log left open.
    Heal(Vec<(CallId, ToolOutcome)>),
}

impl Action {
    /// Whether it is a decision: nothing to carry out, only to record, which
    /// [`decide`](StepIterator::decide) and the journal do.
    #[must_use]
    pub const fn is_decision(&self) -> bool {
        matches!(
            self,
            Self::Account(_)
                | Self::Answer(_)
                | Self::Correct(_)
                | Self::MendState(_)
                | Self::CloseStep(_)
                | Self::TakeMessages(_)
                | Self::End(_)
                | Self::Heal(_)
        )
    }
}

impl Action {
    /// Whether the calls that ran side by side have their results: what comes next sees the state that
    /// their changes make together.
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

/// One call to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTask {
    /// The call.
    pub call: CallId,
    /// Which try this is, from 1, counting the runs that may have tried before.
    pub attempt: u32,
    /// Whether it must not run twice: [`ToolStarted`](Event::ToolStarted) has to be on record before it
    /// runs, by the append of the process that runs it, when it is about to run and not while it waits
    /// in a queue.
    pub at_most_once: bool,
    /// Whether it must not run twice and its start is on record, so that it may have run: ask
    /// `reconcile`.
    pub in_doubt: bool,
}

/// What was found out about a reply's calls.
#[derive(Debug, Clone)]
struct Fit {
    reply: Arc<AssistantMessage>,
    gates: Gates,
}

/// A child to begin or to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildTask {
    /// The call.
    pub call: CallId,
    /// The child's session.
    pub session: SessionId,
    /// What a child that is to be begun may use at most.
    pub allowance: Option<Budget>,
}

/// The machine over the step functions: same events and agent in, same action out.
#[derive(Debug, Clone)]
pub struct StepIterator {
    agent: AnyAgent,
    session: Session,
    /// The reply whose open calls were all found fit to run, and which of them wait for people.
    /// What is asked many times in a step is judged once.
    fit: Option<Fit>,
    /// What `decide` found to be next, until the session changes.
    found: Option<Action>,
}

impl StepIterator {
    /// The machine at the end of a session's log.
    #[must_use]
    pub fn new(agent: AnyAgent, session: Session) -> Self {
        Self { agent, session, fit: None, found: None }
    }

    /// The session so far.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session so far, for others.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Notes what an append was acknowledged as. That changes nothing of what comes next, but for
    /// the time that has passed.
    pub(crate) fn settle(&mut self, append: AppendId, at: Timestamp) {
        self.session.settle(append, at);
        if self.session.budget(&self.agent).wall_time_ms.is_some() {
            self.found = None;
        }
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.found = None;
        &mut self.session
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// What to do next. Asking has no effect.
    #[must_use]
    pub fn next(&self) -> Action {
        self.found.clone().unwrap_or_else(|| self.find())
    }

    /// How the run ends, if that is what comes next.
    #[must_use]
    pub fn ending(&self) -> Option<RunOutcome> {
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
                let next = next_in_step(session, agent, step, self.gates(step));
                let mend = if next.ends_phase() { mend_state(session, agent) } else { None };
                mend.map_or(next, Action::MendState)
            }
            None => next_step(session, agent),
        }
    }

    /// Takes what came of an effect.
    ///
    /// # Errors
    /// If an event is not legal here; those before it were taken.
    pub fn supply(&mut self, events: &[Event]) -> Result<()> {
        let run = self.session.current_run().map(|run| run.id.clone());
        let session = self.session_mut();
        for event in events {
            session.apply(event, run.as_ref())?;
        }
        Ok(())
    }

    /// Carries out every decision up to the next effect or the end of the run, and returns the
    /// events that record them. The end is left to the driver, which has hooks to run first.
    ///
    /// # Errors
    /// If a decision is not legal, which is a bug.
    pub fn decide(&mut self) -> Result<Vec<Event>> {
        let mut decided = Vec::new();
        loop {
            let step = self.session.open_step().map_or(0, |step| step.reply.step);
            let events = match self.find() {
                Action::Account(calls) => wait_usage(&self.session, &calls),
                Action::Answer(results) => results.into_iter().map(Event::from).collect(),
                Action::Correct(message) => vec![Event::CorrectionSent { step, message }],
                Action::MendState(patch) => {
                    vec![Event::StateChanged { patch, by: BY_MERGE.to_owned() }]
                }
                Action::CloseStep(step) => vec![Event::StepClosed { step }],
                Action::Heal(results) => vec![Event::HistoryHealed { results }],
                Action::TakeMessages(requests) => vec![Event::MessagesTaken { requests }],
                found => {
                    // An action other than an answer: no call was refused.
                    self.fit = self.session.open_step().and_then(|step| self.judged(step));
                    self.found = Some(found);
                    return Ok(decided);
                }
            };
            self.supply(&events)?;
            decided.extend(events);
        }
    }

    /// Which calls of the reply wait for people, if all are known to be fit.
    fn gates(&self, step: &StepRecord) -> Option<&Gates> {
        let reply = step.reply.message.as_ref()?;
        let fit = self.fit.as_ref().filter(|fit| Arc::ptr_eq(&fit.reply, reply))?;
        Some(&fit.gates)
    }

    fn judged(&self, step: &StepRecord) -> Option<Fit> {
        let reply = step.reply.message.clone()?;
        let gates = match self.gates(step) {
            Some(known) => known.clone(),
            None => gates(&self.session, &self.agent, step),
        };
        Some(Fit { reply, gates })
    }
}
