//! The requests of AG-UI clients.
//!
//! A client posts the messages that it has with each request. Only the last ones are read, and of these only what their
//! author may say: the message of a user, and the results of the client's tools. Everything else comes from the
//! session's log.
//!
//! # Results of tools
//!
//! The result of a client's tool is a text. If it is a JSON object, array or string, it is read as that value. All other
//! texts are strings, including `42` and `true`, unless the call has a schema that only the JSON value fits: see
//! [`Answered::for_schema`].

mod messages;

use std::collections::BTreeSet;

use helix_agents_core::error::Result;
use helix_agents_core::event::Answer;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::UserMessage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Interrupt;
use crate::answer::Answered;
use crate::approval::ApprovalId;
use crate::limits::{RequestLimits, call_ref, check, check_id, each, invalid, parse, recordable};
use messages::{News, user_message};

/// A request to run an agent.
///
/// # Examples
///
/// ```
/// use helix_agents_protocols::RequestLimits;
/// use helix_agents_protocols::ag_ui::{RunAgentInput, RunIntent};
///
/// let body = br#"{
///     "threadId": "chat-1",
///     "runId": "run-1",
///     "messages": [{"id": "m1", "role": "user", "content": "Hello"}]
/// }"#;
/// let input = RunAgentInput::decode(body, &RequestLimits::default())?;
/// assert_eq!(input.session()?.as_str(), "chat-1");
/// assert!(matches!(&input.intent, RunIntent::Say { message } if message.content == "Hello"));
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunAgentInput {
    /// The thread, which the client chose.
    pub thread: String,
    /// The run, which the client chose. A request with a known run joins it.
    pub run: String,
    /// The request of the client, decoded.
    pub intent: RunIntent,
    /// The state of the client.
    pub state: Option<Value>,
    /// Members that the client's program added.
    pub forwarded_props: Option<Value>,
    /// The ids of the last reasoning messages that the client has. See
    /// [`Translator::with_client_reasoning`](super::Translator::with_client_reasoning).
    pub reasoning: Vec<String>,
}

/// The requests of a client: a message, answers, or the present turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunIntent {
    /// The user says something.
    Say {
        /// The message. Its id is the one that the client gave it.
        message: UserMessage,
    },
    /// Calls are answered, and the turn continues.
    Answer {
        /// The answers. They may include some of earlier requests: only those to pending calls matter.
        answers: Vec<Answered>,
    },
    /// The client has nothing to say: it joins the run or comes back to it.
    Join,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'b> {
    thread_id: String,
    run_id: String,
    #[serde(default, borrow)]
    messages: Option<&'b RawValue>,
    #[serde(default, borrow)]
    resume: Option<&'b RawValue>,
    #[serde(default, borrow)]
    state: Option<&'b RawValue>,
    #[serde(default, borrow)]
    forwarded_props: Option<&'b RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeEntry<'b> {
    interrupt_id: String,
    status: ResumeStatus,
    #[serde(default, borrow)]
    payload: Option<&'b RawValue>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ResumeStatus {
    Resolved,
    Cancelled,
}

#[derive(Deserialize)]
struct ApprovalPayload<'b> {
    approved: bool,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default, borrow)]
    arguments: Option<&'b RawValue>,
}

impl RunAgentInput {
    /// Decodes the body of a request.
    ///
    /// # Errors
    /// Returns [`TooLarge`](helix_agents_core::error::ErrorCode::TooLarge) beyond a limit,
    /// [`IdInvalid`](helix_agents_core::error::ErrorCode::IdInvalid) for an invalid message id, and
    /// [`InputInvalid`](helix_agents_core::error::ErrorCode::InputInvalid) for anything else that is not a request of
    /// AG-UI.
    pub fn decode(body: &[u8], limits: &RequestLimits) -> Result<Self> {
        let body: Body<'_> = limits.decode(body)?;
        check_id("the thread id", &body.thread_id)?;
        check_id("the run id", &body.run_id)?;
        let news = News::of(body.messages, limits)?;
        let mut answers = resumed(body.resume, limits)?;
        answers.extend(news.results(limits)?);
        check("the number of answers", answers.len(), limits.answers)?;
        // A client may answer a call in both ways.
        let mut known = BTreeSet::new();
        answers.retain(|answer| known.insert(answer.call.to_string()));
        let is_resume = body.resume.is_some_and(|resume| resume.get() != "[]");
        let intent = match news.said {
            Some(message) if answers.is_empty() => {
                RunIntent::Say { message: user_message(message, limits)? }
            }
            None if answers.is_empty() && !is_resume => RunIntent::Join,
            _ => RunIntent::Answer { answers },
        };
        let value = |what, json: Option<&RawValue>, limit| {
            let Some(json) = json else { return Ok(None) };
            check(what, json.get().len(), limit)?;
            parse(json.get().as_bytes())
        };
        Ok(Self {
            intent,
            state: value("the size of the state", body.state, limits.state_bytes)?,
            forwarded_props: value(
                "the size of `forwardedProps`",
                body.forwarded_props,
                limits.extra_bytes,
            )?,
            reasoning: news.reasoning.into(),
            thread: body.thread_id,
            run: body.run_id,
        })
    }

    /// Returns the session of the thread, which has the same id.
    ///
    /// # Errors
    /// Returns [`IdInvalid`](helix_agents_core::error::ErrorCode::IdInvalid) if the thread's id is not valid for a
    /// session.
    pub fn session(&self) -> Result<SessionId> {
        SessionId::validated(self.thread.clone())
    }

    /// Returns the id of the run.
    ///
    /// # Errors
    /// Returns [`IdInvalid`](helix_agents_core::error::ErrorCode::IdInvalid) if the id is not valid for a run.
    pub fn run_id(&self) -> Result<RunId> {
        RunId::validated(self.run.clone())
    }
}

fn resumed(entries: Option<&RawValue>, limits: &RequestLimits) -> Result<Vec<Answered>> {
    let mut answers = Vec::new();
    each(entries, "the number of answers", limits.answers, |entry| {
        let entry: ResumeEntry<'_> = parse(entry.get().as_bytes())?;
        if entry.interrupt_id != Interrupt::AWAITING_CHILDREN {
            answers.push(resume(&entry, limits)?);
        }
        Ok(())
    })?;
    Ok(answers)
}

fn resume(entry: &ResumeEntry<'_>, limits: &RequestLimits) -> Result<Answered> {
    let cancelled = || "cancelled by the user".to_owned();
    let is_cancelled = entry.status == ResumeStatus::Cancelled;
    let is_approval = entry.interrupt_id.rsplit('#').next().is_some_and(|id| id.contains('~'));
    if !is_approval {
        let call = call_ref(&entry.interrupt_id)?;
        let answer = if is_cancelled {
            Answer::Error(cancelled())
        } else {
            Answer::Returned(recordable(entry.payload, limits)?)
        };
        return Ok(Answered::new(call, answer, None));
    }
    let id = ApprovalId::parse(&entry.interrupt_id)?;
    let answer = if is_cancelled {
        Answer::Denied { reason: Some(cancelled()) }
    } else {
        let payload = entry.payload.map_or("null", RawValue::get);
        let payload: ApprovalPayload<'_> = serde_json::from_str(payload)
            .map_err(|_| invalid("the answer to an approval request needs `approved`"))?;
        check("the reason", payload.reason.as_ref().map_or(0, String::len), limits.error_bytes)?;
        match payload {
            ApprovalPayload { approved: true, arguments: None, .. } => {
                Answer::Approved { edited: None }
            }
            ApprovalPayload { approved: true, arguments, .. } => {
                Answer::Approved { edited: Some(recordable(arguments, limits)?) }
            }
            ApprovalPayload { reason, .. } => Answer::Denied { reason },
        }
    };
    Ok(Answered::new(id.call, answer, Some(id.digest)))
}
