//! Calls of companion tools: the task that each call requests, and its outcome.

use std::sync::Arc;

use serde_json::{Value, json};

use super::budget::companion_allowance;
use super::children::{ChildSpec, failed};
use crate::agent::{AgentDefinition, AnyAgent, CompanionCall, CompanionCommand, is_companion_name};
use crate::error::ErrorCode;
use crate::event::{ChildStart, CompanionRef, Event, ToolFinish, ToolOutcome};
use crate::id::{RequestId, RunId};
use crate::json::Json;
use crate::machine::child_status::ChildStatus;
use crate::machine::session::{RunStatus, Session};
use crate::message::{ToolCall, UserMessage};
use crate::run_options::Input;
use crate::text::{MAX_NAME, excerpt};

/// The task that a call of a companion tool requests.
#[derive(Debug)]
pub enum CompanionTask {
    /// Nothing to do: the call already has its result.
    Done(ToolOutcome),
    /// Starts a child.
    Start(Box<ChildSpec>),
    /// Sends a message to a child.
    Message(CompanionMessage),
    /// Reports the status of these children.
    List(Vec<Arc<ChildStart>>),
    /// Reports the status of this child.
    Status(ChildStart),
    /// Stops this child permanently.
    Stop(ChildStart, AnyAgent),
    /// Waits for this child.
    Wait(ChildStart),
}

/// Returns the task of a call, or `None` if it is not a valid call of a companion tool.
#[must_use]
pub fn companion_task(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
) -> Option<CompanionTask> {
    let found = match agent.companion_call(call)?.ok()? {
        CompanionCall::Spawn { agent: name, message, name: chosen } => {
            spawn_task(session, agent, call, &name, message, chosen)
        }
        CompanionCall::List => {
            let starts = session.companions().map(|(_, record)| Arc::clone(&record.start));
            Ok(CompanionTask::List(starts.collect()))
        }
        CompanionCall::Command { name, command } => {
            command_task(session, agent, call, &name, command)
        }
    };
    Some(found.unwrap_or_else(|reason| CompanionTask::Done(unknown(reason))))
}

fn spawn_task(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
    wanted: &str,
    message: String,
    name: Option<String>,
) -> Result<CompanionTask, String> {
    let Some(companion) = agent.companion(wanted) else {
        let known: Vec<_> =
            agent.companions().iter().map(|companion| &**companion.agent().name()).collect();
        let wanted = excerpt(wanted, MAX_NAME);
        return Err(format!("there is no agent `{wanted}`; there are: {}", known.join(", ")));
    };
    let name = name.unwrap_or_else(|| session.free_name(wanted));
    if !is_companion_name(&name) {
        let name = excerpt(&name, MAX_NAME);
        return Err(format!(
            "`{name}` is not a valid name: use 1 to 64 letters, digits, `_` or `-`"
        ));
    }
    if let Some(record) = session.companion(&name) {
        if record.start.agent != *companion.agent().name() {
            return Err(format!("a companion `{name}` of another agent already exists"));
        }
        // A companion that has ended starts another turn.
        let start = ChildStart { call: call.id.clone(), ..ChildStart::clone(&record.start) };
        let message = CompanionMessage::new(session, start, companion.agent(), message);
        return Ok(CompanionTask::Message(CompanionMessage { is_spawn: true, ..message }));
    }
    let most = agent.limits().max_companions;
    if session.companions().count() >= most {
        let message = format!("there are {most} companions already, which is the limit");
        return Ok(CompanionTask::Done(failed(ErrorCode::CompanionLimit, message)));
    }
    let stays = CompanionRef { name, mode: companion.mode() };
    let input = Ok(Input::from(message));
    let mut spec = ChildSpec::new(session, call, companion.agent(), Some(stays), input);
    spec.start.allowance = companion_allowance(session, agent);
    Ok(CompanionTask::Start(Box::new(spec)))
}

fn command_task(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
    name: &str,
    command: CompanionCommand,
) -> Result<CompanionTask, String> {
    let Some(record) = session.companion(name) else {
        let names: Vec<_> = session.companions().map(|(name, _)| name).collect();
        let name = excerpt(name, MAX_NAME);
        return Err(format!("there is no companion `{name}`; there are: {}", names.join(", ")));
    };
    let start = ChildStart { call: call.id.clone(), ..ChildStart::clone(&record.start) };
    let Some(companion) = agent.companion(&start.agent) else {
        return Err(format!("the agent `{}` is no longer a companion", start.agent));
    };
    let child = Arc::clone(companion.agent());
    Ok(match command {
        CompanionCommand::Message(message) => {
            CompanionTask::Message(CompanionMessage::new(session, start, &child, message))
        }
        CompanionCommand::Status => CompanionTask::Status(start),
        CompanionCommand::Terminate => CompanionTask::Stop(start, child),
        CompanionCommand::Wait => CompanionTask::Wait(start),
    })
}

/// A message to a companion.
#[derive(Debug, Clone)]
pub struct CompanionMessage {
    /// The companion, recorded as the child of this call.
    pub start: ChildStart,
    /// The companion's agent.
    pub agent: AnyAgent,
    /// The message text.
    pub message: UserMessage,
    /// The request id, which ensures that the message is queued only once.
    pub request: RequestId,
    /// The id of the run that the message starts, if it starts one.
    pub run: RunId,
    /// Whether the message comes from a call that starts a companion. It can only restart a child
    /// whose turn is over; any other child does not receive it.
    pub is_spawn: bool,
}

/// How a message is delivered to a companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The child already has the message.
    Known,
    /// The child does not receive the message, for this reason.
    Refused(&'static str),
    /// The message starts a new turn, because the last turn has ended.
    NewTurn,
    /// The message is queued and taken between two steps. A child that is paused but can continue
    /// must be resumed.
    Queued,
}

impl CompanionMessage {
    fn new(session: &Session, start: ChildStart, agent: &AnyAgent, message: String) -> Self {
        let sender = format!("{}/{}", session.id(), start.call);
        Self {
            request: RequestId::from(sender.as_str()),
            run: RunId::from(sender.as_str()),
            message: UserMessage::new(message),
            agent: Arc::clone(agent),
            start,
            is_spawn: false,
        }
    }

    /// Returns how the message is delivered to a child with this status.
    #[must_use]
    pub fn delivery(&self, child: &Session, status: &ChildStatus) -> Delivery {
        if child.knows_message(&self.request) || child.run(&self.run).is_some() {
            return Delivery::Known;
        }
        match status {
            ChildStatus::Ended(result, _) if result.status == RunStatus::Aborted => {
                Delivery::Refused("the child was terminated; start another one")
            }
            ChildStatus::Ended(..) => Delivery::NewTurn,
            _ if self.is_spawn => {
                Delivery::Refused("a child with this name already exists; send it a message")
            }
            ChildStatus::Live
            | ChildStatus::Waiting
            | ChildStatus::Ready
            | ChildStatus::Interrupted => Delivery::Queued,
        }
    }

    /// Returns the outcome of a call whose message was refused for this reason.
    #[must_use]
    pub fn refused(reason: &str) -> CompanionOutcome {
        CompanionOutcome::done(unknown(reason.to_owned()))
    }

    /// Returns the outcome of a call whose message could not be delivered.
    #[must_use]
    pub fn undelivered() -> CompanionOutcome {
        let message = "the child keeps starting and ending runs; try again";
        CompanionOutcome::done(failed(ErrorCode::StoreBusy, message))
    }
}

/// The outcome of a call of a companion tool: its result, the child that it waits for, or both a
/// result and a child that it started in the background.
#[derive(Debug, Clone, PartialEq)]
pub struct CompanionOutcome {
    start: Option<ChildStart>,
    outcome: Option<ToolOutcome>,
}

impl CompanionOutcome {
    /// Creates the outcome of a call that has its result.
    #[must_use]
    pub fn done(outcome: ToolOutcome) -> Self {
        Self { start: None, outcome: Some(outcome) }
    }

    /// Creates the outcome of a call that waits for this child.
    #[must_use]
    pub fn waiting(start: ChildStart) -> Self {
        Self { start: Some(start), outcome: None }
    }

    /// Creates the outcome of a call that gave this child work. The call waits for the child,
    /// unless the child runs in the background.
    #[must_use]
    pub fn assigned(start: ChildStart) -> Self {
        let background = start.companion.as_ref().filter(|companion| companion.is_background());
        let outcome = background.map(|companion| {
            let (name, session) = (&companion.name, &start.session);
            success(json!({ "name": name, "session": session, "status": "running" }))
        });
        Self { start: Some(start), outcome }
    }

    /// Creates the outcome that reports the status of this child.
    #[must_use]
    pub fn status(start: &ChildStart, status: &ChildStatus) -> Self {
        Self::done(success(described(start, status)))
    }

    /// Creates the outcome that lists the children with their status.
    #[must_use]
    pub fn listed(children: &[(Arc<ChildStart>, ChildStatus)]) -> Self {
        let children = children.iter().map(|(start, status)| {
            let mut child = described(start, status);
            if let Some(members) = child.as_object_mut() {
                members.remove("output");
            }
            child
        });
        Self::done(success(json!({ "children": children.collect::<Vec<_>>() })))
    }

    /// Creates the outcome of a call that stopped this child permanently.
    #[must_use]
    pub fn stopped(start: &ChildStart) -> Self {
        let name = start.companion.as_ref().map(|companion| companion.name.as_str());
        Self::done(success(json!({ "name": name, "terminated": true })))
    }

    /// Returns the events that record the outcome of the call, which took this many attempts.
    #[must_use]
    pub fn facts(self, call: &ToolCall, attempt: u32) -> Vec<Event> {
        let started = self.start.map(|start| Event::ChildStarted(Arc::new(start)));
        let finished = self.outcome.map(|outcome| {
            let finish = ToolFinish::without_run(call.id.clone(), outcome);
            Event::from(ToolFinish { attempts: attempt, ..finish })
        });
        started.into_iter().chain(finished).collect()
    }
}

/// Describes a child's status, for the model to read.
fn described(start: &ChildStart, status: &ChildStatus) -> Value {
    let name = start.companion.as_ref().map(|companion| companion.name.as_str());
    let mut description = json!({ "name": name, "agent": start.agent });
    let (status, result) = match status {
        ChildStatus::Ended(result, _) => (result.status.as_str(), Some(result)),
        ChildStatus::Live | ChildStatus::Ready => ("running", None),
        ChildStatus::Interrupted => ("interrupted", None),
        ChildStatus::Waiting => ("waits_for_people", None),
    };
    if let Some(members) = description.as_object_mut() {
        members.insert("status".into(), status.into());
        if let Some(output) = result.and_then(|result| result.output.as_ref()) {
            members.insert("output".into(), output.to_value());
        }
        if let Some(error) = result.and_then(|result| result.error.as_ref()) {
            members.insert("error".into(), error.message.clone().into());
        }
    }
    description
}

fn success(value: Value) -> ToolOutcome {
    ToolOutcome::Success(Json::from(value))
}

fn unknown(message: String) -> ToolOutcome {
    failed(ErrorCode::CompanionUnknown, message)
}
