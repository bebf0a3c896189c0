//! The events that start a run. The functions are pure, so that every runtime starts runs in the
//! same way.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::session::{RunStatus, START_OF_SESSION, Session};
use super::step::heal;
use crate::agent::AgentDefinition;
use crate::budget::Budget;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, INPUT_BY, ParentRef, Trigger};
use crate::id::{RequestId, RunId};
use crate::message::UserMessage;
use crate::run_options::Input;
use crate::state::{Patch, is_too_deep};
use crate::store::SessionStatus;
use crate::trace::TraceParent;

/// The description of a run that is about to start.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The run's id.
    pub run: RunId,
    /// The kind of the runtime that will execute the run.
    pub runtime: Arc<str>,
    /// The stream's last sequence number.
    pub stream_from: u64,
    /// The parent, if the session is new and a child.
    pub parent: Option<ParentRef>,
    /// Whether a child that the session waits for can continue or has ended, according to the
    /// child's log.
    pub has_ready_child: bool,
    /// Limits on the session's usage. Limits that are not set stay as they are.
    pub budget: Option<Budget>,
    /// The interrupt that the run clears: one that an explicit resume of this session or of its
    /// parent overrides. `None` for a takeover.
    pub clears: Option<RequestId>,
    /// The caller's trace.
    pub trace: Option<TraceParent>,
}

impl StartRun {
    /// Creates the description of a run on a root session.
    #[must_use]
    pub fn new(run: RunId, runtime: impl Into<Arc<str>>, stream_from: u64) -> Self {
        Self {
            run,
            runtime: runtime.into(),
            stream_from,
            parent: None,
            has_ready_child: false,
            budget: None,
            clears: None,
            trace: None,
        }
    }

    pub(crate) fn started(&self, after: Option<RunId>, trigger: Trigger) -> Event {
        Event::RunStarted {
            run: self.run.clone(),
            after,
            trigger,
            runtime: Arc::clone(&self.runtime),
            stream_from: self.stream_from,
            budget: self.budget.map(Arc::new),
            clears: self.clears.clone(),
            trace: self.trace,
        }
    }
}

/// Returns the events that start a turn, on a new session (`session` has no event yet) or on one
/// whose last run ended. If the session was suspended and all its calls are answered, the turn
/// continues instead, and the messages enter it when the step is done.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] without a message or with an unsuitable state,
/// [`ErrorCode::StateInvalid`] if the recorded state does not fit the agent,
/// [`ErrorCode::AgentMismatch`], [`ErrorCode::Suspended`] if the session waits for answers or
/// children, and [`ErrorCode::ConfigInvalid`] if the budget limits costs and a model has no price.
/// If the last run did not end, [`ErrorCode::AlreadyRunning`] if it is `alive`, and
/// [`ErrorCode::RunUnfinished`] otherwise.
pub fn execute_events(
    session: &Session,
    agent: &AgentDefinition,
    start: &StartRun,
    input: &Input,
    tags: &BTreeMap<String, String>,
    alive: bool,
) -> Result<Vec<Event>> {
    if input.messages.is_empty() {
        return Err(Error::new(ErrorCode::InputInvalid, "the input has no message"));
    }
    check_prices(session, agent, start)?;
    let mut events: Vec<_> = heal_event(session).into_iter().collect();
    let state = if session.position().version == 0 {
        events.push(Event::SessionCreated {
            agent: Arc::clone(agent.name()),
            tags: tags.clone(),
            state: agent.initial_state().clone(),
            parent: start.parent.clone(),
        });
        events.push(start.started(None, Trigger::Execute));
        agent.initial_state().to_value()
    } else {
        check_agent(session, agent)?;
        if session.current_run().is_some() {
            return Err(unfinished(session, alive));
        }
        let after = session.last_run().map(|run| run.id.clone());
        if let Some(run) = session.last_run().filter(|_| session.open_step().is_some()) {
            // The open step has to finish first.
            let waits =
                run.status.is_suspended() && !session.can_continue_step() && !start.has_ready_child;
            if session.pending_calls().next().is_some() || waits {
                return Err(waiting(session));
            }
            events.push(start.started(Some(run.id.clone()), Trigger::Resume));
            events.extend(state_change(agent, session.state(), input.state.as_ref())?);
            events.extend(queued(start, &input.messages));
            return Ok(events);
        }
        let trigger = if after.is_some() { Trigger::Continue } else { Trigger::Execute };
        events.push(start.started(after, trigger));
        Value::clone(session.state())
    };
    events.extend(state_change(agent, &state, input.state.as_ref())?);
    events.push(Event::UserMessages { messages: input.messages.clone() });
    Ok(events)
}

/// Returns the events that resume a session whose last run was `after` when the caller read it. A
/// message enters the transcript when the step in progress is done.
///
/// # Errors
/// Returns [`ErrorCode::AlreadyResumed`] if another run has started since,
/// [`ErrorCode::NothingToResume`] if the last turn is complete or aborted, [`ErrorCode::Suspended`]
/// if nothing that it waits for has arrived, [`ErrorCode::AgentMismatch`], and
/// [`ErrorCode::StateInvalid`].
pub fn resume_events(
    session: &Session,
    agent: &AgentDefinition,
    start: &StartRun,
    after: Option<&RunId>,
    message: Option<&UserMessage>,
) -> Result<Vec<Event>> {
    check_agent(session, agent)?;
    check_after(session, after)?;
    check_prices(session, agent, start)?;
    let last = session.last_run();
    let trigger = match (session.status(), last.map(|run| run.status)) {
        (_, Some(RunStatus::Running)) => Trigger::Recover,
        (_, Some(status)) if status.is_suspended() => {
            if !session.can_continue_step() && !start.has_ready_child {
                return Err(waiting(session));
            }
            Trigger::Resume
        }
        (SessionStatus::Failed | SessionStatus::Interrupted, Some(_)) => Trigger::Resume,
        (status, _) => {
            let message = format!("the session is {status}: there is nothing to resume");
            return Err(Error::new(ErrorCode::NothingToResume, message)
                .with_context("session", session.id()));
        }
    };
    agent.check_state(session.state())?;
    let mut events: Vec<_> = heal_event(session).into_iter().collect();
    events.push(start.started(after.cloned(), trigger));
    match message {
        Some(message) if session.open_step().is_some() => {
            events.extend(queued(start, std::slice::from_ref(message)));
        }
        Some(message) => events.push(Event::UserMessages { messages: vec![message.clone()] }),
        None => {}
    }
    Ok(events)
}

/// Returns the events that queue messages, which enter the transcript when the step in progress is
/// done.
fn queued<'a>(
    start: &'a StartRun,
    messages: &'a [UserMessage],
) -> impl Iterator<Item = Event> + use<'a> {
    messages.iter().enumerate().map(|(index, message)| Event::MessageQueued {
        request: RequestId::from(format!("{}/{index}", start.run)),
        message: message.clone(),
        from: None,
        trace: start.trace,
    })
}

/// Returns the events that abort a session without an active run. They form a run of their own, in
/// one append.
///
/// # Errors
/// Returns [`ErrorCode::NothingToStop`] if the session has already ended.
pub fn abort_events(
    session: &Session,
    start: &StartRun,
    request: RequestId,
    reason: Option<String>,
) -> Result<Vec<Event>> {
    if matches!(session.status(), SessionStatus::Completed | SessionStatus::Aborted) {
        let message = format!("the session is {}: there is nothing to abort", session.status());
        return Err(
            Error::new(ErrorCode::NothingToStop, message).with_context("session", session.id())
        );
    }
    Ok(terminate_events(session, start, request, reason))
}

/// Returns the events that stop a session permanently, even if it is complete. For a companion that
/// accepts no further messages.
#[must_use]
pub fn terminate_events(
    session: &Session,
    start: &StartRun,
    request: RequestId,
    reason: Option<String>,
) -> Vec<Event> {
    let after = session.last_run().map(|run| run.id.clone());
    let run = start.run.clone();
    let mut events: Vec<_> = heal_event(session).into_iter().collect();
    events.push(start.started(after, Trigger::Abort));
    events.push(Event::AbortRequested { request, run, reason });
    events
}

/// Returns the events that rewind a session to a checkpoint and continue from there, in one append.
/// `after` is the last run that the caller saw. The store checks whether that run is alive when the
/// new run starts.
///
/// If the step at the checkpoint had ended the turn, it ends the turn again, unless there is a
/// message. Version 0 is the start of the session and needs a message.
///
/// # Errors
/// Returns [`ErrorCode::AlreadyResumed`] if another run has started since,
/// [`ErrorCode::CheckpointNotFound`], [`ErrorCode::InputInvalid`] for the start of the session
/// without a message, [`ErrorCode::ChildrenOpen`] if a sub-agent is not done,
/// [`ErrorCode::AgentMismatch`], and [`ErrorCode::StateInvalid`].
pub fn rewind_events(
    session: &Session,
    agent: &AgentDefinition,
    start: &StartRun,
    after: Option<&RunId>,
    to: u64,
    message: Option<&UserMessage>,
) -> Result<Vec<Event>> {
    check_agent(session, agent)?;
    check_after(session, after)?;
    session.check_rewind_target(to)?;
    if to == START_OF_SESSION && message.is_none() {
        let message = "a rewind to the start of a session needs a message";
        return Err(
            Error::new(ErrorCode::InputInvalid, message).with_context("session", session.id())
        );
    }
    let children: Vec<_> = session.open_children().map(|child| child.session.as_str()).collect();
    if !children.is_empty() {
        let message = "a sub-agent is not done: resume the session, or abort it first";
        return Err(Error::new(ErrorCode::ChildrenOpen, message)
            .with_context("session", session.id())
            .with_context("children", children.join(", ")));
    }
    let mut events: Vec<_> = heal_event(session).into_iter().collect();
    events.push(Event::Rewound { to });
    let mut back = session.clone();
    for event in &events {
        back.apply(event, None)?;
    }
    agent.check_state(back.state())?;
    let trigger = match session.current_run() {
        Some(_) => Trigger::Recover,
        None => Trigger::Resume,
    };
    events.push(start.started(after.cloned(), trigger));
    events.extend(message.map(|message| Event::UserMessages { messages: vec![message.clone()] }));
    Ok(events)
}

/// Returns the event that must precede any other if the session's imported log contains calls
/// without results.
pub(crate) fn heal_event(session: &Session) -> Option<Event> {
    session.needs_heal().then(|| Event::HistoryHealed { results: heal(session) })
}

/// Rejects a cost limit if the price of a model is unknown.
fn check_prices(session: &Session, agent: &AgentDefinition, start: &StartRun) -> Result<()> {
    let budget = start.budget.unwrap_or_default().or(session.budget(agent));
    if budget.cost.is_none() {
        return Ok(());
    }
    let price_problems = agent.price_problems();
    if price_problems.is_empty() {
        return Ok(());
    }
    let message = format!("the budget limits costs, and {}", price_problems.join("; "));
    Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("agent", agent.name()))
}

pub(crate) fn check_agent(session: &Session, agent: &AgentDefinition) -> Result<()> {
    if session.agent() == agent.name() {
        return Ok(());
    }
    Err(Error::new(ErrorCode::AgentMismatch, "the session belongs to another agent")
        .with_context("session", session.id())
        .with_context("belongs_to", session.agent())
        .with_context("agent", agent.name()))
}

pub(crate) fn check_after(session: &Session, after: Option<&RunId>) -> Result<()> {
    let last = session.last_run().map(|run| &run.id);
    if last == after {
        return Ok(());
    }
    let winner = last.map_or_else(String::new, RunId::to_string);
    Err(Error::new(ErrorCode::AlreadyResumed, "another run has started meanwhile")
        .with_context("session", session.id())
        .with_context("run", winner))
}

fn waiting(session: &Session) -> Error {
    let calls: Vec<_> = session.pending_calls().map(|pending| pending.call.as_str()).collect();
    let children: Vec<_> = session.open_children().map(|child| child.session.as_str()).collect();
    let message = "the session waits for answers or children: submit the answers, or abort it";
    let mut error = Error::new(ErrorCode::Suspended, message).with_context("session", session.id());
    if !calls.is_empty() {
        error = error.with_context("calls", calls.join(", "));
    }
    if !children.is_empty() {
        error = error.with_context("children", children.join(", "));
    }
    error
}

fn unfinished(session: &Session, alive: bool) -> Error {
    let (code, message) = if alive {
        (ErrorCode::AlreadyRunning, "the session has an active run")
    } else {
        (ErrorCode::RunUnfinished, "the last run stopped without ending; resume it first")
    };
    Error::new(code, message).with_context("session", session.id())
}

/// Returns the event that sets the given members of the state.
fn state_change(
    agent: &AgentDefinition,
    state: &Value,
    given: Option<&Value>,
) -> Result<Option<Event>> {
    let Some(given) = given else {
        agent.check_state(state)?;
        return Ok(None);
    };
    let mut after = state.clone();
    match (&mut after, given) {
        (Value::Object(members), Value::Object(new)) => {
            members.extend(new.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        (whole, new) => *whole = new.clone(),
    }
    if is_too_deep(&after) {
        return Err(Error::new(ErrorCode::InputInvalid, "the given state is nested too deeply"));
    }
    agent.check_state(&after).map_err(|error| {
        Error::new(ErrorCode::InputInvalid, "the given state does not fit the agent's state type")
            .with_source(error)
    })?;
    let patch = Patch::between(state, &after);
    Ok((!patch.is_empty()).then(|| Event::StateChanged { patch, by: INPUT_BY.to_owned() }))
}
