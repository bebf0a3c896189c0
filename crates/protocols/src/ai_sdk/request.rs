//! The requests of `useChat`.
//!
//! A page posts its whole history with each request. Only the last message is read, and of that only what its author may
//! say: the text of a user, and the answers to calls. Everything else comes from the session's log.

use std::collections::VecDeque;

use helix_agents_core::error::Result;
use helix_agents_core::event::Answer;
use helix_agents_core::id::{MessageId, RunId, SessionId};
use helix_agents_core::message::{Media, MediaSource, UserMessage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::continuation::SeenCall;
use super::{Role, Seen, ToolApproval};
use crate::answer::Answered;
use crate::approval::ApprovalId;
use crate::digest::digest;
use crate::limits::{
    RequestLimits, call_ref, check, check_id, each, invalid, members, parse, recordable,
};

/// A request of `useChat` to its API route.
///
/// # Examples
///
/// ```
/// use helix_agents_protocols::RequestLimits;
/// use helix_agents_protocols::ai_sdk::{ChatIntent, ChatRequest};
///
/// let body = br#"{
///     "id": "chat-1",
///     "trigger": "submit-message",
///     "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}]
/// }"#;
/// let request = ChatRequest::decode(body, &RequestLimits::default())?;
/// assert_eq!(request.session()?.as_str(), "chat-1");
/// assert!(matches!(&request.intent, ChatIntent::Say { message, .. } if message.content == "Hello"));
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The id of the chat, which the page chose.
    pub chat: String,
    /// The request of the page, decoded.
    pub intent: ChatIntent,
    /// The parts of the turn's message that the page has. `None` if its last message is not one of the agent.
    pub seen: Option<Seen>,
    /// The other members of the body, which the page's code added.
    pub extra: serde_json::Map<String, Value>,
}

/// The reason for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Trigger {
    /// The user sent a message, or calls were answered.
    #[default]
    SubmitMessage,
    /// The agent's last message is generated again.
    RegenerateMessage,
}

/// The requests of a page: a message, answers, or the present turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ChatIntent {
    /// The user says something.
    Say {
        /// The message. Its id is the one that the page gave it.
        message: UserMessage,
        /// The id of the message that this one replaces, if the user edited a message.
        replaces: Option<String>,
    },
    /// The agent's message is generated again.
    Regenerate {
        /// The user's message before it, if the page has one.
        message: Option<UserMessage>,
        /// The id of the agent's message, if the page named it.
        of: Option<String>,
    },
    /// Calls are answered.
    Answer {
        /// The id of the agent's message with the calls.
        message: String,
        /// The answers in the order of the calls. They include answers of earlier requests: only those to pending calls
        /// matter, and an answer that is submitted again has no effect.
        answers: Vec<Answered>,
    },
}

/// The members of the body. Messages stay text: all but the last one are never parsed.
#[derive(Default)]
struct Body<'b> {
    id: Option<String>,
    last: Option<&'b RawValue>,
    message: Option<&'b RawValue>,
    trigger: Trigger,
    message_id: Option<String>,
    extra: serde_json::Map<String, Value>,
}

impl<'b> Body<'b> {
    fn decode(body: &'b [u8], limits: &RequestLimits) -> Result<Self> {
        limits.check_body(body)?;
        let mut decoded = Self::default();
        let mut extra_bytes = 0;
        members(body, |name, value| {
            let json = value.get().as_bytes();
            match &*name {
                "id" => decoded.id = Some(parse(json)?),
                "messages" => each(Some(value), "the number of messages", usize::MAX, |message| {
                    decoded.last = Some(message);
                    Ok(())
                })?,
                "message" => decoded.message = parse(json)?,
                "trigger" => decoded.trigger = parse::<Option<Trigger>>(json)?.unwrap_or_default(),
                "messageId" => decoded.message_id = parse(json)?,
                _ => {
                    extra_bytes += name.len() + json.len();
                    let what = "the size of the other members of the body";
                    check(what, extra_bytes, limits.extra_bytes)?;
                    decoded.extra.insert(name, parse(json)?);
                }
            }
            Ok(())
        })?;
        Ok(decoded)
    }
}

#[derive(Deserialize)]
struct PostedMessage<'b> {
    #[serde(default)]
    id: String,
    role: Role,
    #[serde(default, borrow)]
    parts: Option<&'b RawValue>,
}

/// The type of a part, which decides whether and how the rest of it is read.
#[derive(Deserialize)]
struct PartType {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct PostedText {
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostedFile {
    media_type: String,
    url: String,
    #[serde(default)]
    filename: Option<String>,
}

/// A call, without what is never believed: its arguments.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostedCall<'b> {
    tool_call_id: String,
    state: String,
    #[serde(default, borrow)]
    output: Option<&'b RawValue>,
    #[serde(default)]
    error_text: Option<String>,
    #[serde(default)]
    provider_executed: Option<bool>,
    #[serde(default)]
    approval: Option<ToolApproval>,
    #[serde(default)]
    preliminary: Option<bool>,
}

impl ChatRequest {
    /// Decodes the body of a request. A body with one `message` instead of `messages` is accepted as well, so that a page
    /// can send less.
    ///
    /// # Errors
    /// Returns [`TooLarge`](helix_agents_core::error::ErrorCode::TooLarge) beyond a limit,
    /// [`IdInvalid`](helix_agents_core::error::ErrorCode::IdInvalid) for an invalid message id, and
    /// [`InputInvalid`](helix_agents_core::error::ErrorCode::InputInvalid) for anything else that is not a request of
    /// `useChat`.
    pub fn decode(body: &[u8], limits: &RequestLimits) -> Result<Self> {
        let body = Body::decode(body, limits)?;
        let chat = body.id.ok_or_else(|| invalid("the request has no chat id"))?;
        check_id("the chat id", &chat)?;
        if let Some(id) = &body.message_id {
            check_id("the message id", id)?;
        }
        let last = body.message.or(body.last).ok_or_else(|| invalid("the request has no message"));
        let last = match (body.trigger, last) {
            (Trigger::RegenerateMessage, Err(_)) => None,
            (_, last) => Some(parse::<PostedMessage<'_>>(last?.get().as_bytes())?),
        };
        if let Some(last) = last.as_ref().filter(|last| !last.id.is_empty()) {
            check_id("the id of the last message", &last.id)?;
        }
        let (mut intent, mut seen) = (None, None);
        match (body.trigger, last) {
            (Trigger::RegenerateMessage, last) => {
                let last = last.filter(|last| last.role == Role::User);
                let message = last.map(|last| said(&last, limits)).transpose()?;
                intent = Some(ChatIntent::Regenerate { message, of: body.message_id });
            }
            (Trigger::SubmitMessage, Some(last)) if last.role == Role::User => {
                let message = said(&last, limits)?;
                intent = Some(ChatIntent::Say { message, replaces: body.message_id });
            }
            (Trigger::SubmitMessage, Some(last)) if last.role == Role::Assistant => {
                let (answers, has) = answers(&last, limits)?;
                seen = Some(has);
                intent = Some(ChatIntent::Answer { answers, message: last.id });
            }
            (Trigger::SubmitMessage, _) => {}
        }
        let message = "the last message is neither one of the user nor one of the agent";
        let intent = intent.ok_or_else(|| invalid(message))?;
        Ok(Self { chat, intent, seen, extra: body.extra })
    }

    /// Returns the session of the chat, which has the same id.
    ///
    /// # Errors
    /// Returns [`IdInvalid`](helix_agents_core::error::ErrorCode::IdInvalid) if the chat's id is not valid for a session.
    pub fn session(&self) -> Result<SessionId> {
        SessionId::validated(self.chat.clone())
    }

    /// Returns the id of the run that a user's message starts. A request that is posted again has the same one, so that
    /// it joins the run instead of starting another. Returns `None` for a message without an id and for other requests.
    #[must_use]
    pub fn run_id(&self) -> Option<RunId> {
        let ChatIntent::Say { message, .. } = &self.intent else { return None };
        let id = message.id.as_ref()?;
        let content = serde_json::to_string(message).ok()?;
        Some(RunId::from(format!("chat-{}", digest([&*self.chat, id.as_str(), &*content]))))
    }
}

/// Calls `take` with the type and the text of each part of a message. Types that the protocol does not define are
/// included.
fn each_part<'b>(
    posted: &PostedMessage<'b>,
    limits: &RequestLimits,
    mut take: impl FnMut(&str, &'b [u8]) -> Result<()>,
) -> Result<()> {
    each(posted.parts, "the number of the message's parts", limits.parts, |part| {
        let json = part.get().as_bytes();
        take(&parse::<PartType>(json)?.kind, json)
    })
}

/// Returns the user's message. Parts of other types than text and files are ignored.
fn said(posted: &PostedMessage<'_>, limits: &RequestLimits) -> Result<UserMessage> {
    let mut message = UserMessage::new("");
    each_part(posted, limits, |kind, json| {
        let so_far = std::mem::replace(&mut message, UserMessage::new(""));
        message = match kind {
            "text" => {
                let text = parse::<PostedText>(json)?.text;
                let size = so_far.content.len() + text.len();
                check("the text of the message", size, limits.text_bytes)?;
                so_far.text(&text)
            }
            "file" => {
                check("the number of files", so_far.attachments.len() + 1, limits.files)?;
                let PostedFile { media_type, url, filename } = parse(json)?;
                so_far.attach(media(&media_type, &url, filename.as_deref())?)
            }
            _ => so_far,
        };
        Ok(())
    })?;
    if message.content.trim().is_empty() && message.attachments.is_empty() {
        return Err(invalid("the message is empty"));
    }
    Ok(if posted.id.is_empty() {
        message
    } else {
        message.with_id(MessageId::validated(posted.id.clone())?)
    })
}

fn media(media_type: &str, url: &str, name: Option<&str>) -> Result<Media> {
    let media = match url.strip_prefix("data:").map(|rest| rest.split_once(";base64,")) {
        Some(Some((_, bytes))) => Media::new(media_type, MediaSource::Base64(bytes.into())),
        None if url.starts_with("https://") || url.starts_with("http://") => {
            Media::from_url(media_type, url)
        }
        _ => return Err(invalid("a file is neither base64 data nor an HTTP address")),
    };
    Ok(match name {
        Some(name) => media.name(name),
        None => media,
    })
}

/// Returns the answers in the agent's message, which are results of calls that the server does not execute and answered
/// approval requests, and the parts that the page has.
fn answers(posted: &PostedMessage<'_>, limits: &RequestLimits) -> Result<(Vec<Answered>, Seen)> {
    let mut answers = VecDeque::new();
    let mut seen = Seen::default();
    each_part(posted, limits, |kind, json| {
        match kind {
            "step-start" => seen.add_step(),
            kind if kind.starts_with("data-") => seen.add_data(kind),
            kind if kind.starts_with("tool-") || kind == "dynamic-tool" => {
                let call: PostedCall<'_> = parse(json)?;
                let (has_output, is_server) = (call.has_output(), call.is_server());
                answers.extend(answer(&call, limits)?);
                let approval = call.approval.map(|approval| approval.id);
                let state = SeenCall::new(&call.state, has_output, is_server, approval);
                seen.add_call(&call.tool_call_id, state);
            }
            _ => seen.fill_step(),
        }
        // The message contains all answers of the turn. Those of earlier requests come first, and are not needed again.
        if answers.len() > limits.answers {
            answers.pop_front();
        }
        Ok(())
    })?;
    if answers.is_empty() {
        return Err(invalid("the agent's message contains no answer"));
    }
    Ok((answers.into(), seen))
}

impl PostedCall<'_> {
    fn has_output(&self) -> bool {
        self.state.starts_with("output-") && self.preliminary != Some(true)
    }

    fn is_server(&self) -> bool {
        self.provider_executed == Some(true)
    }
}

fn answer(call: &PostedCall<'_>, limits: &RequestLimits) -> Result<Option<Answered>> {
    let reference = call_ref(&call.tool_call_id)?;
    let by_client = call.provider_executed.is_none() && call.approval.is_none();
    Ok(match (&*call.state, &call.approval) {
        ("output-available", _) if by_client && call.preliminary != Some(true) => {
            let output = recordable(call.output, limits)?;
            Some(Answered::new(reference, Answer::Returned(output), None))
        }
        ("output-error", _) if by_client => {
            let error = call.error_text.clone().unwrap_or_else(|| "the call failed".to_owned());
            check("the error of a call", error.len(), limits.error_bytes)?;
            Some(Answered::new(reference, Answer::Error(error), None))
        }
        ("approval-responded", Some(approval)) => {
            let Some(approved) = approval.approved else { return Ok(None) };
            let id = ApprovalId::parse(&approval.id)?;
            let reason = approval.reason.clone();
            check("the reason", reason.as_ref().map_or(0, String::len), limits.error_bytes)?;
            let answer = if approved {
                Answer::Approved { edited: None }
            } else {
                Answer::Denied { reason }
            };
            Some(Answered::new(id.call, answer, Some(id.digest)))
        }
        _ => None,
    })
}
