//! What calls of companion tools ask for, and what they come to.

use std::sync::Arc;

use serde_json::{Value, json};

use super::budget::companion_allowance;
use super::children::{ChildSpec, failed};
use crate::agent::{AgentDefinition, AnyAgent, CompanionCall, CompanionCommand, is_companion_name};
use crate::error::ErrorCode;
use crate::event::{ChildStart, CompanionRef, Event, ToolFinish, ToolOutcome};
use crate::executor::Input;
use crate::id::{RequestId, RunId};
use crate::json::Json;
use crate::message::{ToolCall, UserMessage};
use crate::session::{ChildStatus, RunStatus, Session};
use crate::text::{MAX_NAME, excerpt};

/// What is to be done for a call of a companion tool.
#[derive(Debug)]
pub enum CompanionTask {
    /// Nothing: it has its result.
    Done(ToolOutcome),
    /// To begin a child.
    Begin(Box<ChildSpec>),
    /// To give a child something else to do.
    Tell(CompanionMessage),
    /// To look how these children stand.
    List(Vec<Arc<ChildStart>>),
    /// To look how this one stands.
    Look(ChildStart),
    /// To stop this child for good.
    Stop(ChildStart, AnyAgent),
    /// To wait for this child.
    Wait(ChildStart),
}

/// What is to be done for a call; none if it is not a call of a companion tool, or not fit.
#[must_use]
pub fn companion_task(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
) -> Option<CompanionTask> {
    let found = match agent.companion_call(call)?.ok()? {
        CompanionCall::Spawn { agent: name, message, name: chosen } => {
            beginning(session, agent, call, &name, message, chosen)
        }
        CompanionCall::List => {
            let starts = session.companions().map(|(_, record)| Arc::clone(&record.start));
            Ok(CompanionTask::List(starts.collect()))
        }
        CompanionCall::Of { name, ask } => asked(session, agent, call, &name, ask),
    };
    Some(found.unwrap_or_else(|why| CompanionTask::Done(unknown(why))))
}

fn beginning(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
    wanted: &str,
    message: String,
    name: Option<String>,
) -> Result<CompanionTask, String> {
    let Some(companion) = agent.companion(wanted) else {
        let known: Vec<_> = agent.companions().iter().map(|it| &**it.agent().name()).collect();
        let wanted = excerpt(wanted, MAX_NAME);
        return Err(format!("there is no agent `{wanted}`; there are: {}", known.join(", ")));
    };
    let name = name.unwrap_or_else(|| session.free_name(wanted));
    if !is_companion_name(&name) {
        let name = excerpt(&name, MAX_NAME);
        return Err(format!("`{name}` is no name: 1 to 64 letters, digits, `_` or `-`"));
    }
    if let Some(record) = session.companion(&name) {
        if record.start.agent != *companion.agent().name() {
            return Err(format!("there is a child `{name}` already, of another agent"));
        }
        // One that has ended goes on: it is consulted again.
        let start = ChildStart { call: call.id.clone(), ..ChildStart::clone(&record.start) };
        let message = CompanionMessage::new(session, start, companion.agent(), message);
        return Ok(CompanionTask::Tell(CompanionMessage { begins: true, ..message }));
    }
    let most = agent.limits().max_companions;
    if session.companions().count() >= most {
        let message = format!("there are {most} children already, and no more are allowed");
        return Ok(CompanionTask::Done(failed(ErrorCode::CompanionLimit, message)));
    }
    let stays = CompanionRef { name, mode: companion.mode() };
    let input = Ok(Input::from(message));
    let mut begin = ChildSpec::new(session, call, companion.agent(), Some(stays), input);
    begin.start.allowance = companion_allowance(session, agent);
    Ok(CompanionTask::Begin(Box::new(begin)))
}

fn asked(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
    name: &str,
    ask: CompanionCommand,
) -> Result<CompanionTask, String> {
    let Some(record) = session.companion(name) else {
        let names: Vec<_> = session.companions().map(|(name, _)| name).collect();
        let name = excerpt(name, MAX_NAME);
        return Err(format!("there is no child `{name}`; there are: {}", names.join(", ")));
    };
    let start = ChildStart { call: call.id.clone(), ..ChildStart::clone(&record.start) };
    let Some(companion) = agent.companion(&start.agent) else {
        return Err(format!("the agent `{}` is no companion any more", start.agent));
    };
    let child = Arc::clone(companion.agent());
    Ok(match ask {
        CompanionCommand::Message(message) => {
            CompanionTask::Tell(CompanionMessage::new(session, start, &child, message))
        }
        CompanionCommand::Status => CompanionTask::Look(start),
        CompanionCommand::Terminate => CompanionTask::Stop(start, child),
        CompanionCommand::Wait => CompanionTask::Wait(start),
    })
}

/// A message to a companion.
#[derive(Debug, Clone)]
pub struct CompanionMessage {
    /// The companion, as the child of this call.
    pub start: ChildStart,
    /// Its agent.
    pub agent: AnyAgent,
    /// The message.
    pub message: UserMessage,
    /// Under which it is queued once.
    pub request: RequestId,
    /// The run that it begins, if it begins one.
    pub run: RunId,
    /// Whether it is to begin the child again: one that is at work does not get it.
    pub begins: bool,
}

/// How a message is handed to a companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It has it already.
    Known,
    /// Not at all, for this reason.
    Refused(&'static str),
    /// As a new turn: the last one is over.
    NewTurn,
    /// Between two of its steps; one that stands still and can go on has to be gone on with.
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
            begins: false,
        }
    }

    /// How it is handed to a child that is so.
    #[must_use]
    pub fn delivery(&self, child: &Session, standing: &ChildStatus) -> Delivery {
        if child.knows_message(&self.request) || child.run(&self.run).is_some() {
            return Delivery::Known;
        }
        match standing {
            ChildStatus::Ended(result, _) if result.status == RunStatus::Aborted => {
                Delivery::Refused("the child was terminated; start another one")
            }
            ChildStatus::Ended(..) => Delivery::NewTurn,
            _ if self.begins => {
                Delivery::Refused("there is a child of this name already; send it a message")
            }
            ChildStatus::Live
            | ChildStatus::Waits
            | ChildStatus::Ready
            | ChildStatus::Interrupted => Delivery::Queued,
        }
    }

    /// What the call comes to whose message was refused for this reason.
    #[must_use]
    pub fn refused(why: &str) -> CompanionOutcome {
        CompanionOutcome::done(unknown(why.to_owned()))
    }

    /// What the call comes to whose message could not be handed over.
    #[must_use]
    pub fn undelivered() -> CompanionOutcome {
        let message = "the child begins and ends runs without pause; try again";
        CompanionOutcome::done(failed(ErrorCode::StoreBusy, message))
    }
}

/// What came of a call of a companion tool: its result, the child that it waits for, or a child that it
/// has begun beside its result.
#[derive(Debug, Clone, PartialEq)]
pub struct CompanionOutcome {
    start: Option<ChildStart>,
    outcome: Option<ToolOutcome>,
}

impl CompanionOutcome {
    /// It has its result.
    #[must_use]
    pub fn done(outcome: ToolOutcome) -> Self {
        Self { start: None, outcome: Some(outcome) }
    }

    /// It waits for this child.
    #[must_use]
    pub fn waits(start: ChildStart) -> Self {
        Self { start: Some(start), outcome: None }
    }

    /// It gave this child something to do: it waits for it, unless the child works beside.
    #[must_use]
    pub fn given(start: ChildStart) -> Self {
        let beside = start.companion.as_ref().filter(|companion| companion.is_background());
        let outcome = beside.map(|companion| {
            let (name, session) = (&companion.name, &start.session);
            success(json!({ "name": name, "session": session, "status": "running" }))
        });
        Self { start: Some(start), outcome }
    }

    /// How this child stands.
    #[must_use]
    pub fn told(start: &ChildStart, standing: &ChildStatus) -> Self {
        Self::done(success(described(start, standing)))
    }

    /// Which children there are, and how they stand.
    #[must_use]
    pub fn listed(children: &[(Arc<ChildStart>, ChildStatus)]) -> Self {
        let children = children.iter().map(|(start, standing)| {
            let mut child = described(start, standing);
            if let Some(members) = child.as_object_mut() {
                members.remove("output");
            }
            child
        });
        Self::done(success(json!({ "children": children.collect::<Vec<_>>() })))
    }

    /// This child was stopped for good.
    #[must_use]
    pub fn stopped(start: &ChildStart) -> Self {
        let name = start.companion.as_ref().map(|it| it.name.as_str());
        Self::done(success(json!({ "name": name, "terminated": true })))
    }

    /// The result, if it has it.
    #[must_use]
    pub fn outcome(&self) -> Option<&ToolOutcome> {
        self.outcome.as_ref()
    }

    /// The facts of it, for the call that was tried so often.
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

/// How a child is, for the model to read.
fn described(start: &ChildStart, standing: &ChildStatus) -> Value {
    let name = start.companion.as_ref().map(|it| it.name.as_str());
    let mut told = json!({ "name": name, "agent": start.agent });
    let (status, result) = match standing {
        ChildStatus::Ended(result, _) => (result.status.as_str(), Some(result)),
        ChildStatus::Live | ChildStatus::Ready => ("running", None),
        ChildStatus::Interrupted => ("interrupted", None),
        ChildStatus::Waits => ("waits_for_people", None),
    };
    if let Some(members) = told.as_object_mut() {
        members.insert("status".into(), status.into());
        if let Some(output) = result.and_then(|it| it.output.as_ref()) {
            members.insert("output".into(), output.to_value());
        }
        if let Some(error) = result.and_then(|it| it.error.as_ref()) {
            members.insert("error".into(), error.message.clone().into());
        }
    }
    told
}

fn success(value: Value) -> ToolOutcome {
    ToolOutcome::Success(Json::from(value))
}

fn unknown(message: String) -> ToolOutcome {
    failed(ErrorCode::CompanionUnknown, message)
}
