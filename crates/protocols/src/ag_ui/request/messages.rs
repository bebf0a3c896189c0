//! The messages of a request, of which only the last ones are read.

use std::collections::VecDeque;

use helix_agents_core::error::Result;
use helix_agents_core::event::Answer;
use helix_agents_core::id::{MAX_ID_BYTES, MessageId};
use helix_agents_core::message::{Media, MediaSource, UserMessage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ag_ui::result_id;
use crate::answer::Answered;
use crate::limits::{RequestLimits, call_ref, check, each, invalid, parse};

/// The maximum number of reasoning messages that are remembered. Only those of the step in progress matter.
const MAX_REASONING: usize = 64;

/// The messages after the last one of the agent.
#[derive(Default)]
pub(super) struct News<'b> {
    /// The last message of the user.
    pub(super) said: Option<&'b RawValue>,
    /// The results of the client's tools, oldest first.
    results: Vec<&'b RawValue>,
    /// The ids of the last reasoning messages of the client.
    pub(super) reasoning: VecDeque<String>,
}

/// The members of a message that decide whether the rest of it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    role: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    tool_call_id: String,
}

#[derive(Deserialize)]
struct PostedUser<'b> {
    #[serde(default)]
    id: String,
    /// A text, or an array of parts.
    #[serde(borrow)]
    content: &'b RawValue,
}

#[derive(Deserialize)]
struct PostedPart<'b> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default, borrow)]
    source: Option<&'b RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostedResult<'b> {
    tool_call_id: String,
    #[serde(borrow)]
    content: &'b RawValue,
    #[serde(default)]
    error: Option<String>,
}

impl<'b> News<'b> {
    /// Finds the news in the messages of a client. Messages of other roles, such as `system` and `activity`, are ignored
    /// wherever they are.
    pub(super) fn of(messages: Option<&'b RawValue>, limits: &RequestLimits) -> Result<Self> {
        let mut news = Self::default();
        let mut malformed = None;
        each(messages, "the number of messages", usize::MAX, |message| {
            let head = match parse::<Head>(message.get().as_bytes()) {
                Ok(head) => head,
                // Only the news have to be readable.
                Err(error) => {
                    malformed = Some(error);
                    return Ok(());
                }
            };
            match &*head.role {
                "user" => {
                    (news.said, malformed) = (Some(message), None);
                    news.results.clear();
                }
                "assistant" | "reasoning" => {
                    (news.said, malformed) = (None, None);
                    news.results.clear();
                    if head.role == "reasoning" {
                        news.remember(head.id);
                    }
                }
                // The server's own results are no answers of the client.
                // One result too many is sufficient to refuse the request, unless a message of the agent follows.
                "tool"
                    if head.id != result_id(&head.tool_call_id)
                        && news.results.len() <= limits.answers =>
                {
                    news.results.push(message);
                }
                _ => {}
            }
            Ok(())
        })?;
        malformed.map_or(Ok(news), Err)
    }

    fn remember(&mut self, id: String) {
        if id.len() > MAX_ID_BYTES {
            return;
        }
        if self.reasoning.len() == MAX_REASONING {
            self.reasoning.pop_front();
        }
        self.reasoning.push_back(id);
    }

    /// Returns the results of the client's tools, newest first.
    pub(super) fn results(&self, limits: &RequestLimits) -> Result<Vec<Answered>> {
        self.results.iter().rev().map(|message| result(message, limits)).collect()
    }
}

fn result(message: &RawValue, limits: &RequestLimits) -> Result<Answered> {
    let posted: PostedResult<'_> = parse(message.get().as_bytes())?;
    let call = call_ref(&posted.tool_call_id)?;
    if let Some(error) = posted.error {
        check("the error of a call", error.len(), limits.error_bytes)?;
        return Ok(Answered::new(call, Answer::Error(error), None));
    }
    check("the result of a call", posted.content.get().len(), limits.answer_bytes)?;
    let text = match text_of(posted.content)? {
        Some(text) => text,
        None => posted.content.get().to_owned(),
    };
    Answered::of_text(call, text)
}

/// Returns the text of a content, unless the content is an array of parts.
fn text_of(content: &RawValue) -> Result<Option<String>> {
    if content.get().starts_with('[') {
        return Ok(None);
    }
    parse(content.get().as_bytes()).map(Some)
}

/// Returns the message of the user.
pub(super) fn user_message(message: &RawValue, limits: &RequestLimits) -> Result<UserMessage> {
    let posted: PostedUser<'_> = parse(message.get().as_bytes())?;
    let mut message = UserMessage::new("");
    match text_of(posted.content)? {
        Some(text) => message = message.text(&text),
        None => each(Some(posted.content), "the number of parts", limits.parts, |part| {
            let so_far = std::mem::replace(&mut message, UserMessage::new(""));
            message = add_part(so_far, parse(part.get().as_bytes())?)?;
            check("the text of the message", message.content.len(), limits.text_bytes)?;
            check("the number of files", message.attachments.len(), limits.files)
        })?,
    }
    check("the text of the message", message.content.len(), limits.text_bytes)?;
    if message.content.trim().is_empty() && message.attachments.is_empty() {
        return Err(invalid("the message is empty"));
    }
    let PostedUser { id, .. } = posted;
    Ok(if id.is_empty() { message } else { message.with_id(MessageId::validated(id)?) })
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Source {
    Data {
        value: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    Url {
        value: String,
        #[serde(default, rename = "mimeType")]
        mime_type: Option<String>,
    },
}

/// Adds a part of a message. Parts of unknown types are ignored.
fn add_part(message: UserMessage, part: PostedPart<'_>) -> Result<UserMessage> {
    let default_type = match (&*part.kind, part.text) {
        ("text", Some(text)) => return Ok(message.text(&text)),
        ("text", None) => return Err(invalid("a part with the type `text` has no text")),
        ("image", _) => "image/*",
        ("audio", _) => "audio/*",
        ("video", _) => "video/*",
        ("document", _) => "application/octet-stream",
        _ => return Ok(message),
    };
    let refused = || invalid("a file is neither base64 data nor an HTTP address");
    let source = part.source.ok_or_else(refused)?;
    let media = match serde_json::from_str(source.get()).map_err(|_| refused())? {
        Source::Data { value, mime_type } => {
            Media::new(mime_type, MediaSource::Base64(value.into()))
        }
        Source::Url { value, mime_type }
            if value.starts_with("https://") || value.starts_with("http://") =>
        {
            Media::from_url(mime_type.as_deref().unwrap_or(default_type), value)
        }
        Source::Url { .. } => return Err(refused()),
    };
    Ok(message.attach(media))
}
