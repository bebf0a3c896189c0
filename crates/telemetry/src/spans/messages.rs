//! The messages of a model call, in the format of OpenTelemetry's conventions.

use std::sync::Arc;

use helix_agents_core::event::ModelReply;
use helix_agents_core::message::{AssistantMessage, Message, SharedMessage, ToolResultMessage};
use serde_json::{Value, json};

use super::{Scope, text_of};
use crate::content::{Content, Field, MAX_ATTRIBUTE_BYTES, cut};

/// Returns the messages that a model call received, as JSON: those since the last reply, or all of them.
pub(super) fn input(scope: &Scope<'_>, reply: &Arc<ModelReply>) -> String {
    let content = scope.content();
    let transcript = before_reply(scope.session.transcript(), reply);
    let is_reply = |message: &SharedMessage| matches!(&**message, Message::Assistant(_));
    let start = match content.has_full_input() {
        true => 0,
        false => transcript.iter().rposition(is_reply).map_or(0, |last| last + 1),
    };
    let messages = transcript.get(start..).unwrap_or_default();
    let messages = messages.iter().map(|message| encoded(scope, message).to_string());
    array(&messages.collect::<Vec<_>>())
}

/// Returns an array of these messages, without the oldest ones if it would be too long for an attribute.
fn array(messages: &[String]) -> String {
    let mut bytes = 2;
    let fitting = messages.iter().rev().take_while(|message| {
        bytes += message.len() + 1;
        bytes <= MAX_ATTRIBUTE_BYTES
    });
    // A single message that is too long is cut.
    let kept = fitting.count().max(1);
    let kept = messages.get(messages.len().saturating_sub(kept)..).unwrap_or_default();
    cut(&format!("[{}]", kept.join(",")))
}

/// Returns the reply of a model call as JSON, if it has a message.
pub(super) fn output(scope: &Scope<'_>, reply: &ModelReply) -> Option<String> {
    let content = scope.content();
    let mut message = match (&reply.message, &reply.output) {
        (Some(message), _) => assistant(message, content),
        (None, Some(output)) => {
            let text = content.redacted(Field::Output, output.text());
            json!({ "role": "assistant", "parts": [{ "type": "text", "content": text }] })
        }
        (None, None) => return None,
    };
    if let (Some(reason), Some(members)) = (reply.stop_reason, message.as_object_mut()) {
        members.insert("finish_reason".to_owned(), text_of(&reason).into());
    }
    Some(cut(&Value::from(vec![message]).to_string()))
}

/// Returns the messages before a reply. They are the same ones in every later state of the session.
fn before_reply<'a>(
    transcript: &'a [SharedMessage],
    reply: &Arc<ModelReply>,
) -> &'a [SharedMessage] {
    let is_this_reply = |message: &SharedMessage| match (&**message, &reply.message) {
        (Message::Assistant(known), Some(given)) => Arc::ptr_eq(known, given) || known == given,
        _ => false,
    };
    let end = transcript.iter().rposition(is_this_reply).unwrap_or(transcript.len());
    transcript.get(..end).unwrap_or_default()
}

fn encoded(scope: &Scope<'_>, message: &Message) -> Value {
    let content = scope.content();
    let text = |role: &str, text: &str| {
        let text = content.redacted(Field::Input, text);
        json!({ "role": role, "parts": [{ "type": "text", "content": text }] })
    };
    match message {
        Message::System { content } => text("system", content),
        Message::User(message) => text("user", &message.content),
        Message::Assistant(message) => assistant(message, content),
        Message::Tool(message) => result(scope, message),
    }
}

fn assistant(message: &AssistantMessage, content: &Content) -> Value {
    let mut parts = Vec::new();
    if let Some(thinking) = &message.thinking {
        let text = content.redacted(Field::Reasoning, &thinking.content);
        parts.push(json!({ "type": "reasoning", "content": text }));
    }
    if let Some(text) = &message.content {
        let text = content.redacted(Field::Output, text);
        parts.push(json!({ "type": "text", "content": text }));
    }
    for call in &message.tool_calls {
        let mut part = json!({ "type": "tool_call", "id": call.id.as_str(), "name": &*call.name });
        // The log does not say yet which of the calls humans have to approve.
        if let (true, Some(members)) = (content.includes_human(), part.as_object_mut()) {
            let arguments = content.redacted(Field::Arguments, call.arguments.text());
            members.insert("arguments".to_owned(), arguments.into());
        }
        parts.push(part);
    }
    json!({ "role": "assistant", "parts": parts })
}

fn result(scope: &Scope<'_>, message: &ToolResultMessage) -> Value {
    let content = scope.content();
    let call = &message.tool_call_id;
    let mut part = json!({ "type": "tool_call_response", "id": call.as_str() });
    let is_human = scope.is_human(call);
    if (!is_human || content.includes_human())
        && let Some(members) = part.as_object_mut()
    {
        let field = if is_human { Field::Answer } else { Field::Result };
        members.insert("response".to_owned(), content.redacted(field, &message.content).into());
    }
    json!({ "role": "tool", "parts": [part] })
}
