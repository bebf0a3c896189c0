//! Agents that stay: the calls by which a model begins them, speaks to them and asks how they are,
//! and the message by which one says that it is done.

use std::sync::Arc;

use helix_agents_core::agent::{Companion, CompanionCall, CompanionMode, is_companion_name};
use helix_agents_core::error::{ErrorCode, ErrorRecord, Result};
use helix_agents_core::event::{
    ChildNotice, ChildStart, CompanionRef, Event, ParentRef, ToolFinish, ToolOutcome,
};
use helix_agents_core::executor::{AgentResult, Input, ResumeOptions};
use helix_agents_core::fault;
use helix_agents_core::hooks::{HookContext, HookPoint, SubAgentView};
use helix_agents_core::id::{RequestId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::message::{Message, ToolCall, UserMessage};
use helix_agents_core::session::{
    RequestKind, RunStatus, Session, end_of_call, load, pass_down, queue_message, result_message,
};
use helix_agents_core::step::{CallTask, companion_allowance};
use helix_agents_core::stream::{ChunkKind, Effect};
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::family::{self, Standing, standing};
use crate::feed::Ticket;
use crate::hooks::changed;
use crate::lease::LeaseKeeper;
use crate::parts::Parts;
use crate::start::{self, Child};

/// How often a message is handed to a child that begins and ends runs meanwhile.
const MAX_TRIES: u32 = 16;

/// What came of a call.
enum Done {
    /// It has its result.
    Finished(ToolOutcome),
    /// It waits for this child.
    Waits(ChildStart),
    /// It began this child, and has its result.
    Begun(ChildStart, ToolOutcome),
}

/// Carries out calls of companion tools, one after the other. Each is recorded before the next, so
/// that a name is given once.
pub(crate) async fn run(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    tasks: &[CallTask],
) -> Result<()> {
    for task in tasks {
        let session = driver.journal.session();
        let call = session.open_step().and_then(|step| step.tool_call(&task.call)).cloned();
        let Some(call) = call else { return Ok(()) };
        let Some(Ok(asked)) = driver.agent.companion_call(&call) else { continue };
        let input = call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
        let step = session.last_step();
        let ticket = driver.feed.begin(step, Effect::Tool { call: call.id.clone() });
        driver.feed.show(
            Some(ticket),
            step,
            ChunkKind::ToolStart {
                call: call.id.clone(),
                tool: Arc::clone(&call.name),
                arguments: input.text().to_owned(),
            },
        );
        driver.unsettled.push(ticket);
        let (done, changes) = carry_out(driver, &call, &input, asked, ticket).await?;
        fault::point("companion.carried_out");
        let mut facts: Vec<_> = changes.into_iter().collect();
        let outcome = match done {
            Done::Finished(outcome) => Some(outcome),
            Done::Waits(start) => {
                facts.push(Event::ChildStarted(Arc::new(start)));
                None
            }
            Done::Begun(start, outcome) => {
                facts.push(Event::ChildStarted(Arc::new(start)));
                Some(outcome)
            }
        };
        if let Some(outcome) = outcome {
            for kind in end_of_call(&call, &outcome) {
                driver.feed.show(Some(ticket), step, kind);
            }
            let finish = ToolFinish::without_run(call.id.clone(), outcome);
            let finish = ToolFinish { attempts: task.attempt, ..finish };
            if !driver.hooks.is_empty() {
                let message = Message::Tool(result_message(&call, &finish.outcome));
                facts.extend(driver.drained_hooks(&call, &finish, &message).await);
            }
            facts.push(finish.into());
        }
        driver.record(lease, facts, &[]).await?;
    }
    Ok(())
}

async fn carry_out(
    driver: &Driver,
    call: &ToolCall,
    input: &Json,
    asked: CompanionCall,
    ticket: Ticket,
) -> Result<(Done, Option<Event>)> {
    let name = match &asked {
        CompanionCall::Spawn { .. } => return spawn(driver, call, input, asked, ticket).await,
        CompanionCall::List => return Ok((Done::Finished(list(driver).await?), None)),
        CompanionCall::Message { name, .. }
        | CompanionCall::Status { name }
        | CompanionCall::Terminate { name }
        | CompanionCall::Wait { name } => name,
    };
    let Some(record) = driver.journal.session().companion(name) else {
        let names: Vec<_> = driver.journal.session().companions().map(|(name, _)| name).collect();
        let message = format!("there is no child `{name}`; there are: {}", names.join(", "));
        return Ok((Done::Finished(failed(ErrorCode::CompanionUnknown, message)), None));
    };
    let start = ChildStart { call: call.id.clone(), ..ChildStart::clone(&record.start) };
    let Some(companion) = driver.agent.companion(&start.agent) else {
        let message = format!("the agent `{}` is no companion any more", start.agent);
        return Ok((Done::Finished(failed(ErrorCode::CompanionUnknown, message)), None));
    };
    let done = match asked {
        CompanionCall::Message { message, .. } => send(driver, start, companion, &message).await?,
        CompanionCall::Terminate { .. } => {
            Done::Finished(terminate(driver, &start, companion).await?)
        }
        CompanionCall::Wait { .. } => Done::Waits(start),
        _ => Done::Finished(success(&describe(driver.parts.as_ref(), &start).await?)),
    };
    Ok((done, None))
}

async fn spawn(
    driver: &Driver,
    call: &ToolCall,
    input: &Json,
    asked: CompanionCall,
    ticket: Ticket,
) -> Result<(Done, Option<Event>)> {
    let CompanionCall::Spawn { agent, message, name } = asked else {
        return Ok((Done::Finished(success(&json!(null))), None));
    };
    let session = driver.journal.session();
    let refused =
        |message: String| Ok((Done::Finished(failed(ErrorCode::CompanionUnknown, message)), None));
    let Some(companion) = driver.agent.companion(&agent) else {
        let known: Vec<_> =
            driver.agent.companions().iter().map(|it| &**it.agent().name()).collect();
        return refused(format!("there is no agent `{agent}`; there are: {}", known.join(", ")));
    };
    let name = name.unwrap_or_else(|| session.free_name(&agent));
    if !is_companion_name(&name) {
        return refused(format!("`{name}` is no name: 1 to 64 letters, digits, `_` or `-`"));
    }
    if session.companion(&name).is_some() {
        return refused(format!("there is a child `{name}` already; send it a message"));
    }
    let child = SessionId::of_companion(session.id(), &name);
    let point = HookPoint::Of("before_sub_agent", call.id.clone());
    let place = driver.place(session.last_step());
    let cx = HookContext::new(&place, point, session.step_state());
    let view = SubAgentView { call: &call.id, agent: &agent, session: &child, input };
    if let Err(reason) = driver.hooks.before_sub_agent(&cx, view).await {
        let outcome = failed(ErrorCode::ToolRefused, format!("not begun: {reason}"));
        return Ok((Done::Finished(outcome), changed(&cx, "before_sub_agent")));
    }
    let start = ChildStart {
        call: call.id.clone(),
        session: child.clone(),
        agent: Arc::clone(companion.agent().name()),
        companion: Some(CompanionRef { name: name.clone(), mode: companion.mode() }),
        allowance: companion_allowance(session, &driver.agent),
    };
    let parent = ParentRef {
        session: session.id().clone(),
        call: call.id.clone(),
        root: session.root().clone(),
        notify: companion.mode() == CompanionMode::NonBlocking,
    };
    let shown = ChunkKind::SubagentStart {
        call: call.id.clone(),
        subagent: Arc::clone(&start.agent),
        child: child.clone(),
    };
    driver.feed.show(Some(ticket), session.last_step(), shown);
    driver.feed.flush().await;
    let agent = Arc::clone(companion.agent());
    let input = Input::from(message);
    let begun = Child { session: child.clone(), parent, allowance: start.allowance };
    let begin = start::execute_child(&driver.runtime, agent, &input, begun, &driver.hooks);
    let changes = changed(&cx, "before_sub_agent");
    if let Err(error) = Box::pin(begin).await {
        if error.code() == ErrorCode::Closed {
            return Err(error);
        }
        tracing::error!(session = %session.id(), %child, %error, "subagent.dispatch_failed");
        let message = format!("the child could not be begun: {}", error.message());
        let outcome = failed(ErrorCode::SubAgentDispatchFailed, message);
        return Ok((Done::Finished(outcome), changes));
    }
    Ok((given(start, companion), changes))
}

/// What a call that gave a child something to do comes to.
fn given(start: ChildStart, companion: &Companion) -> Done {
    if companion.mode() == CompanionMode::Blocking {
        return Done::Waits(start);
    }
    let name = start.companion.as_ref().map(|it| it.name.clone());
    let outcome = success(&json!({ "name": name, "session": start.session, "status": "running" }));
    Done::Begun(start, outcome)
}

/// Hands a child a message: between two steps if it is at work, as a new turn if it is not.
async fn send(
    driver: &Driver,
    start: ChildStart,
    companion: &Companion,
    message: &str,
) -> Result<Done> {
    let parts = &driver.parts;
    let child = &start.session;
    let sender = format!("{}/{}", driver.live.session, start.call);
    let (request, run) = (RequestId::from(sender.as_str()), RunId::from(sender.as_str()));
    let user = UserMessage::new(message);
    for _ in 0..MAX_TRIES {
        let fold = load(&*parts.store, child).await?;
        if fold.knows_message(&request) || fold.run(&run).is_some() {
            return Ok(given(start, companion));
        }
        match standing(parts, child).await? {
            Standing::Ended(result, _) if result.status == RunStatus::Aborted => {
                let message = "the child was terminated; start another one".to_owned();
                return Ok(Done::Finished(failed(ErrorCode::CompanionUnknown, message)));
            }
            Standing::Ended(..) => {
                let agent = Arc::clone(companion.agent());
                let input = Input::from(user.clone());
                let turn = start::continue_child(
                    &driver.runtime,
                    agent,
                    &input,
                    child,
                    &run,
                    &driver.hooks,
                );
                match Box::pin(turn).await {
                    Ok(_) => return Ok(given(start, companion)),
                    Err(error) if error.code() == ErrorCode::AlreadyRunning => {}
                    Err(error) => return Err(error),
                }
            }
            Standing::Live | Standing::Waits | Standing::Ready | Standing::Interrupted => {
                queue_message(parts.outside(), child, &request, &user, None).await?;
                go_on(driver, companion, child).await?;
            }
        }
    }
    let message = "the child begins and ends runs without pause; try again".to_owned();
    Ok(Done::Finished(failed(ErrorCode::StoreBusy, message)))
}

/// Goes on with a child that stands still, if it can go on.
async fn go_on(driver: &Driver, companion: &Companion, child: &SessionId) -> Result<()> {
    if !matches!(standing(&driver.parts, child).await?, Standing::Ready | Standing::Interrupted) {
        return Ok(());
    }
    let agent = Arc::clone(companion.agent());
    let options = ResumeOptions::default();
    let resume = start::resume(&driver.runtime, agent, child, options, &driver.hooks);
    match Box::pin(resume).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == helix_agents_core::error::ErrorKind::Conflict => Ok(()),
        Err(error) => Err(error),
    }
}

async fn terminate(
    driver: &Driver,
    start: &ChildStart,
    companion: &Companion,
) -> Result<ToolOutcome> {
    let child = &start.session;
    let reason = Some("terminated by the session that began it".to_owned());
    match standing(&driver.parts, child).await? {
        Standing::Ended(result, _) if result.status == RunStatus::Aborted => {}
        Standing::Live => {
            pass_down(driver.parts.outside(), child, RequestKind::Abort, reason).await;
            driver.parts.runs.nudge();
        }
        // Nobody speaks to it any more.
        Standing::Ended(..) => {
            let agent = Arc::clone(companion.agent());
            start::abort(&driver.runtime, agent, child, reason, true).await?;
        }
        Standing::Ready | Standing::Interrupted | Standing::Waits => {
            let agent = Arc::clone(companion.agent());
            family::abort(&driver.runtime, agent, child, reason).await?;
        }
    }
    let name = start.companion.as_ref().map(|it| it.name.as_str());
    Ok(success(&json!({ "name": name, "terminated": true })))
}

async fn list(driver: &Driver) -> Result<ToolOutcome> {
    let mut children = Vec::new();
    for (_, record) in driver.journal.session().companions() {
        let mut child = describe(&driver.parts, &record.start).await?;
        if let Some(members) = child.as_object_mut() {
            members.remove("output");
        }
        children.push(child);
    }
    Ok(success(&json!({ "children": children })))
}

/// How a child is, for the model to read.
async fn describe(parts: &Parts, start: &ChildStart) -> Result<Value> {
    let name = start.companion.as_ref().map(|it| it.name.as_str());
    let mut told = json!({ "name": name, "agent": start.agent });
    let (status, result) = match standing(parts, &start.session).await? {
        Standing::Ended(result, _) => (result.status.as_str(), Some(result)),
        Standing::Live | Standing::Ready => ("running", None),
        Standing::Interrupted => ("interrupted", None),
        Standing::Waits => ("waits_for_people", None),
    };
    if let Some(members) = told.as_object_mut() {
        members.insert("status".into(), status.into());
        if let Some(output) = result.as_ref().and_then(|it| it.output.as_ref()) {
            members.insert("output".into(), output.to_value());
        }
        if let Some(error) = result.as_ref().and_then(|it| it.error.as_ref()) {
            members.insert("error".into(), error.message.clone().into());
        }
    }
    Ok(told)
}

/// The result of a call that waited for a companion.
pub(crate) fn result_of(start: &ChildStart, result: &AgentResult) -> ToolOutcome {
    let name = start.companion.as_ref().map(|it| it.name.as_str());
    if let Some(error) = &result.error {
        return failed(ErrorCode::SubAgentFailed, format!("the child failed: {}", error.message));
    }
    let output = result.output.as_ref().map(Json::to_value);
    success(&json!({ "name": name, "status": result.status.as_str(), "output": output }))
}

/// Tells the parent of a companion that works beside it that a run has ended.
pub(crate) async fn notify(parts: &Parts, fold: &Session) {
    let Some(parent) = fold.parent().filter(|parent| parent.notify) else { return };
    let Some(run) = fold.last_run() else { return };
    if matches!(run.status, RunStatus::Running | RunStatus::Interrupted)
        || run.status.is_suspended()
    {
        return;
    }
    fault::point("companion.before_notice");
    let told = tell(parts, &parent.session, fold.id(), &run.id, &AgentResult::of(run), fold).await;
    match told {
        Ok(()) => parts.runs.nudge(),
        // The parent looks for itself when it goes on.
        Err(error) => tracing::warn!(session = %fold.id(), %error, "the parent was not told"),
    }
}

async fn tell(
    parts: &Parts,
    parent: &SessionId,
    child: &SessionId,
    run: &RunId,
    result: &AgentResult,
    fold: &Session,
) -> Result<()> {
    // Where the id would be too long, a digest stands for the parent's.
    let rest = child.as_str().strip_prefix(parent.as_str()).unwrap_or(child.as_str());
    let name = rest.split_once("-agent-").map_or(rest, |(_, name)| name);
    let mut text = format!("[{name}] {}", result.status.as_str());
    if let Some(output) = &result.output {
        text.push_str(&format!(": {}", output.text()));
    }
    if let Some(error) = &result.error {
        text.push_str(&format!(": {}", error.message));
    }
    let message = UserMessage { content: text, hidden: true };
    let notice = ChildNotice { session: child.clone(), used: Arc::new(fold.tree_usage()) };
    let request = RequestId::from(format!("{child}/{run}"));
    queue_message(parts.outside(), parent, &request, &message, Some(&notice)).await
}

/// Looks whether companions have ended that could not tell.
pub(crate) async fn look_for_news(parts: &Parts, fold: &Session) -> Result<()> {
    for (_, record) in fold.companions() {
        let beside =
            record.start.companion.as_ref().is_some_and(|it| it.mode == CompanionMode::NonBlocking);
        if beside {
            let child = load(&*parts.store, &record.start.session).await?;
            notify(parts, &child).await;
        }
    }
    Ok(())
}

fn success(value: &Value) -> ToolOutcome {
    ToolOutcome::Success(Json::from(value.clone()))
}

fn failed(code: ErrorCode, message: String) -> ToolOutcome {
    ToolOutcome::Error(ErrorRecord::new(code, message))
}
