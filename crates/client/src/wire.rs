//! The JSON of the API where it differs from the types of the core crate.

use helix_agents_core::error::{ErrorCode, ErrorKind};
use helix_agents_core::event::Answer;
use helix_agents_core::json::Json;
use helix_agents_core::message::{MediaSource, Message, UserMessage};
use helix_agents_core::session::Submission;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{ClientError, Result};

/// The body of an error.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorDetails,
}

/// The error of a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorDetails {
    pub(crate) code: String,
    pub(crate) message: String,
    kind: String,
    pub(crate) retryable: bool,
    pub(crate) request_id: Option<String>,
}

impl ErrorDetails {
    /// Returns the kind. One of a newer server counts as internal.
    pub(crate) fn kind(&self) -> ErrorKind {
        serde_json::from_value(Value::from(&*self.kind)).unwrap_or(ErrorKind::Internal)
    }
}

/// Returns a message as requests contain it.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] for a hidden message, a file that was uploaded to a provider, and a file before
/// the end of the text: the API has none of these.
pub(crate) fn message_body(message: &UserMessage) -> Result<Value> {
    let invalid = |problem: &'static str| ClientError::new(ErrorCode::InputInvalid, problem);
    if message.hidden {
        return Err(invalid("a client cannot send hidden messages"));
    }
    if message.attachments.is_empty() {
        return Ok(message.content.as_str().into());
    }
    let attachments = message.attachments.iter().map(|attachment| {
        if matches!(attachment.media.source, MediaSource::File { .. }) {
            return Err(invalid("a client cannot refer to files that were uploaded to a provider"));
        }
        if attachment.at != message.content.len() {
            return Err(invalid(
                "a client cannot send a file between two texts; put it after the text",
            ));
        }
        serde_json::to_value(&attachment.media)
            .map_err(|error| invalid("an attachment cannot be written as JSON").with_source(error))
    });
    let attachments = attachments.collect::<Result<Vec<_>>>()?;
    Ok(json!({ "content": message.content, "attachments": attachments }))
}

/// The body of `POST /submit-tool-result`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnswerBody<'a> {
    session_id: &'a str,
    call: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    request_id: &'a str,
    resume: bool,
}

impl<'a> AnswerBody<'a> {
    /// Returns the body for an answer.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] for a kind of answer that this version does not know.
    pub(crate) fn new(
        session_id: &'a str,
        submission: &'a Submission,
        request_id: &'a str,
        resume: bool,
    ) -> Result<Self> {
        let mut body = Self {
            session_id,
            call: submission.call().to_string(),
            result: None,
            error: None,
            approved: None,
            reason: None,
            edited: None,
            digest: submission.arguments_digest(),
            request_id,
            resume,
        };
        match submission.answer() {
            Answer::Returned(result) => body.result = Some(result),
            Answer::Error(message) => body.error = Some(message),
            Answer::Approved { edited } => {
                (body.approved, body.edited) = (Some(true), edited.as_ref());
            }
            Answer::Denied { reason } => {
                (body.approved, body.reason) = (Some(false), reason.as_deref());
            }
            _ => {
                return Err(ClientError::new(ErrorCode::Unsupported, "the API has no such answer"));
            }
        }
        Ok(body)
    }
}

/// Reads messages. Raw JSON cannot be read through an enum with a tag, so the role is read first.
pub(crate) fn messages<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Message>, D::Error> {
    #[derive(Deserialize)]
    struct Role<'a> {
        role: &'a str,
        content: Option<&'a RawValue>,
    }
    fn message(raw: &RawValue) -> serde_json::Result<Message> {
        use serde::de::Error as _;
        let text = raw.get();
        let Role { role, content } = serde_json::from_str(text)?;
        Ok(match role {
            "user" => Message::User(serde_json::from_str(text)?),
            "assistant" => Message::Assistant(serde_json::from_str(text)?),
            "tool" => Message::Tool(serde_json::from_str(text)?),
            "system" => {
                let content = content.map_or("\"\"", RawValue::get);
                Message::System { content: serde_json::from_str(content)? }
            }
            _ => return Err(serde_json::Error::custom("a message has an unknown role")),
        })
    }
    let raw = Vec::<Box<RawValue>>::deserialize(deserializer)?;
    raw.iter().map(|raw| message(raw).map_err(serde::de::Error::custom)).collect()
}

#[cfg(test)]
mod tests;
