//! The routes for `useChat` of the AI SDK.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;
use helix_agents_core::message::{Message, UserMessage};
use helix_agents_core::session::Session;
use helix_agents_protocols::ai_sdk::{
    ChatIntent, ChatRequest, STREAM_HEADER, Seen, history, turn_of_message,
};
use http::{HeaderName, StatusCode};
use serde_json::Value;

use super::turns;
use crate::api::MessagesBody;
use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::call::{Call, Reply};
use crate::front_end::AiSdk;
use crate::limits::Permit;
use crate::ownership::Accessible;
use crate::service::Service;
use crate::view::View;

/// The members of the body with which a page names the agent.
const AGENT_MEMBER: &str = "agentType";

/// Handles a request of `useChat`: a message of the user, answers to calls, or a reply to generate again. Shows the turn
/// that it starts or continues.
///
/// The posted history is not believed: of its last message, only what the user may say is read.
pub(crate) async fn post(service: &Arc<Service>, call: &Call) -> Result<Reply, ApiError> {
    let principal = &call.principal;
    let request = ChatRequest::decode(&call.body, &service.limits.chat_request())?;
    let permit = service.admit_stream(principal)?;
    let session = request.session()?;
    let in_body = request.extra.get(AGENT_MEMBER).and_then(Value::as_str);
    let agent = Some(call.parameter("agent")).filter(|name| !name.is_empty()).or(in_body);
    if let ChatIntent::Say { message, replaces: None } = &request.intent {
        let agent = turns::agent_for(service, principal, &session, agent).await?;
        let (message, run) = (message.clone(), request.run_id());
        turns::say(service, principal, session.clone(), &agent, message, run).await?;
    }
    let found = turns::conversation(service, principal, &session, agent).await?;
    let seen = match &request.intent {
        ChatIntent::Say { replaces: None, .. } => None,
        ChatIntent::Say { message, replaces: Some(replaced) } => {
            edit(service, principal, &found, message, replaced).await?;
            None
        }
        ChatIntent::Regenerate { message, of } => {
            regenerate(service, principal, &found, message.as_ref(), of.as_deref()).await?;
            None
        }
        ChatIntent::Answer { message, answers } => {
            let view = View::read_with_last_run(service, &found.identity()).await?;
            turns::answer(service, principal, &found, &view, answers).await?;
            // A page that shows another turn gets the present one as another message.
            let shown = turn_of_message(&view.page.session, message);
            request.seen.filter(|_| shown == Some(view.page.session.turn()))
        }
        _ => return Err(ApiError::invalid("the server does not know this kind of request")),
    };
    show(service, &found, seen, permit).await
}

/// Shows the present turn from its start if a run is in progress. Otherwise there is nothing to resume.
pub(crate) async fn stream(service: &Arc<Service>, call: &Call) -> Result<Reply, ApiError> {
    let session = SessionId::from(call.parameter("id"));
    let permit = service.admit_stream(&call.principal)?;
    // The page resumes chats that it has not created yet as well.
    let found = match turns::conversation(service, &call.principal, &session, None).await {
        Err(error) if error.code() == ErrorCode::SessionNotFound => return Ok(Reply::Empty),
        found => found?,
    };
    if found.head.summary.run.is_none() {
        return Ok(Reply::Empty);
    }
    show(service, &found, None, permit).await
}

/// Returns the messages of a session, for a page that opens it.
pub(crate) async fn messages(service: &Arc<Service>, call: &Call) -> Result<Reply, ApiError> {
    let session = SessionId::from(call.parameter("id"));
    let found = turns::conversation(service, &call.principal, &session, None).await?;
    let view = View::read(service, &found.identity()).await?;
    let messages = history(&view.folds(), &view.page.live, service.chat_options());
    Reply::json(StatusCode::OK, &MessagesBody { session_id: session.to_string(), messages })
}

/// Replaces a message of the user, and everything after it.
async fn edit(
    service: &Arc<Service>,
    principal: &Principal,
    found: &Accessible,
    message: &UserMessage,
    replaced: &str,
) -> Result<(), ApiError> {
    let view = View::read_with_last_run(service, &found.identity()).await?;
    let session = &view.page.session;
    let turn = turn_of_message(session, replaced).ok_or_else(no_message)?;
    // A repeated request has replaced the message before.
    if turn == session.turn() && said_in(session, turn).is_some_and(|said| said == message) {
        return Ok(());
    }
    turns::repeat_turn(service, principal, found, &view, turn, message.clone()).await?;
    Ok(())
}

/// Generates the agent's message of a turn again.
async fn regenerate(
    service: &Arc<Service>,
    principal: &Principal,
    found: &Accessible,
    message: Option<&UserMessage>,
    of: Option<&str>,
) -> Result<(), ApiError> {
    let view = View::read_with_last_run(service, &found.identity()).await?;
    let session = &view.page.session;
    let turn = match of {
        Some(of) => turn_of_message(session, of).ok_or_else(no_message)?,
        None => session.turn(),
    };
    // The recorded message is the one that the model has seen.
    let message = said_in(session, turn).or(message).ok_or_else(no_message)?;
    match turns::repeat_turn(service, principal, found, &view, turn, message.clone()).await {
        Ok(_) => Ok(()),
        // Another page has asked for the same.
        Err(error) if error.code() == ErrorCode::AlreadyResumed => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the first visible message of the user in a turn.
fn said_in(session: &Session, turn: u32) -> Option<&UserMessage> {
    let of_turn = session.transcript().iter().filter(|message| message.turn() == turn);
    let mut said = of_turn.filter_map(|message| match &**message {
        Message::User(message) if !message.hidden => Some(message),
        _ => None,
    });
    said.next()
}

fn no_message() -> ApiError {
    ApiError::invalid("the conversation has no message with this id")
}

/// Shows the present turn, except for what the page has of it already.
async fn show(
    service: &Arc<Service>,
    found: &Accessible,
    seen: Option<Seen>,
    permit: Permit,
) -> Result<Reply, ApiError> {
    let view = View::read_with_last_run(service, &found.identity()).await?;
    let translator = AiSdk::new(&view, seen, service.chat_options());
    let (name, version) = STREAM_HEADER;
    let reply = turns::show(service, found, &view, translator, permit).await?;
    Ok(reply.header(HeaderName::from_static(name), version))
}
