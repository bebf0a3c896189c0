//! Operations that all protocols of front ends use: sending a message, answering calls, and showing a turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::executor::{Input, ResumeOptions, RunHandle};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::START_OF_SESSION;
use helix_agents_protocols::Answered;

use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::call::{RUN_HEADER, Reply, SESSION_HEADER};
use crate::event_stream::{EventStream, Reader, Translator, Turn};
use crate::handlers::answers;
use crate::handlers::starts::{Launch, launch};
use crate::limits::Permit;
use crate::ownership::{Accessible, accessible, find};
use crate::service::Service;
use crate::view::View;

/// Returns the name of the agent for a session: the given one, that of the existing session, or the only one of the
/// server.
///
/// # Errors
/// Returns [`ErrorCode::AgentMismatch`] if the session belongs to another agent than the given one.
pub(crate) async fn agent_for(
    service: &Service,
    principal: &Principal,
    session: &SessionId,
    given: Option<&str>,
) -> Result<String, ApiError> {
    if let Some(found) = find(&*service.store, principal, session).await? {
        found.check_root()?;
        check_agent(&found, given)?;
        return Ok(found.head.created.agent.to_string());
    }
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let [only] = <[String; 1]>::try_from(service.registry.names()).map_err(|_| {
        let message = "the request has to name an agent, because the server has several: as `agentType` in the body, or \
                       in the path `/agents/{agent}/chat`";
        ApiError::invalid(message)
    })?;
    Ok(only)
}

/// Returns the root session of a conversation with the given agent, or with any.
pub(crate) async fn conversation(
    service: &Service,
    principal: &Principal,
    session: &SessionId,
    agent: Option<&str>,
) -> Result<Accessible, ApiError> {
    let found = accessible(&*service.store, principal, session).await?;
    found.check_root()?;
    check_agent(&found, agent)?;
    Ok(found)
}

fn check_agent(found: &Accessible, given: Option<&str>) -> Result<(), ApiError> {
    if given.is_none_or(|given| *given == *found.head.created.agent) {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::AgentMismatch, "the session belongs to another agent"))
}

/// Starts a turn with a message. A repeated message with the same run id attaches to the run of the first one.
pub(crate) async fn say(
    service: &Arc<Service>,
    principal: &Principal,
    session: SessionId,
    agent: &str,
    message: UserMessage,
    run: Option<RunId>,
) -> Result<RunHandle, ApiError> {
    let launched = Launch {
        session,
        is_chosen: true,
        agent,
        run,
        input: Input::new(message),
        metadata: &BTreeMap::new(),
        budget: None,
    };
    launch(service, principal, launched).await
}

/// Rewinds a session to the state before a turn, and starts that turn again with a message.
pub(crate) async fn repeat_turn(
    service: &Arc<Service>,
    principal: &Principal,
    found: &Accessible,
    view: &View,
    turn: u32,
    message: UserMessage,
) -> Result<RunHandle, ApiError> {
    let permit = service.admit_run(principal)?;
    let session = &view.page.session;
    let agent = service.agent(session.agent(), session.id())?;
    let earlier = session.checkpoints().iter().rfind(|checkpoint| checkpoint.turn < turn);
    let target = earlier.map_or(START_OF_SESSION, |checkpoint| checkpoint.version);
    let mut options = ResumeOptions::default().checkpoint(target).message(message);
    options.required_tags = found.required_tags();
    options.trace = principal.trace();
    // Of two requests to repeat the turn, one does.
    options.after = session.last_run().map(|run| run.id.clone());
    let handle = service.executor.resume(agent, session.id(), options).await?;
    service.watch_run(handle.clone(), permit);
    Ok(handle)
}

/// Records answers and resumes the session. Answers to calls that do not wait for one any more have no effect: another
/// page has answered them, or an earlier request of this one.
///
/// # Errors
/// Returns the errors of answers that are refused, such as [`ErrorCode::AnswerExpired`]. The session is not resumed then.
pub(crate) async fn answer(
    service: &Arc<Service>,
    principal: &Principal,
    found: &Accessible,
    view: &View,
    given: &[Answered],
) -> Result<(), ApiError> {
    let root = found.root();
    for answered in given {
        if view.is_done(&answered.call) {
            continue;
        }
        let schema = view.answer_schema(&answered.call);
        let answered = answered.clone().for_schema(schema.as_ref());
        let mut submission = answered.submission(root, Some(principal.id()))?;
        for (key, value) in found.required_tags() {
            submission = submission.required_tag(key, value);
        }
        if let Some(trace) = principal.trace() {
            submission = submission.trace(trace);
        }
        match service.executor.submit_tool_result(root, submission).await {
            Ok(_) => {}
            Err(error) if error.code() == ErrorCode::AlreadyAnswered => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The response shows whether the session continues.
    drop(answers::resume(service, principal, found).await);
    Ok(())
}

/// Returns the response that shows the present turn of a session, until it ends or waits.
pub(crate) async fn show<T: Translator + 'static>(
    service: &Arc<Service>,
    found: &Accessible,
    view: &View,
    translator: T,
    permit: Permit,
) -> Result<Reply> {
    let turn = Turn::open(Arc::clone(service), found.identity(), view, translator).await?;
    let reply = Reply::events(EventStream::new(Reader::new(service, turn, permit)));
    let session = &view.page.session;
    let reply = reply.header(SESSION_HEADER, session.id().as_str());
    Ok(match session.last_run() {
        Some(run) => reply.header(RUN_HEADER, run.id.as_str()),
        None => reply,
    })
}
