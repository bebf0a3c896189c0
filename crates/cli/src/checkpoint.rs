//! Checkpoints as selected on the command line.

use helix_agents::error::{Error, ErrorCode};
use helix_agents::id::SessionId;
use helix_agents::message::Message;
use helix_agents::session::Session;

use crate::follow_up;
use crate::location::Location;

/// Adds the command that lists the checkpoints to an error about a missing checkpoint.
pub(crate) fn with_hint(error: Error, session: &SessionId, db: &Location) -> Error {
    if error.code() != ErrorCode::CheckpointNotFound {
        return error;
    }
    error.with_context("list", follow_up::command("sessions checkpoints", session, db))
}

/// The model's reply in the step of each checkpoint: its tool calls and its text.
pub(crate) fn replies(session: &Session) -> Vec<String> {
    let mut from = 0;
    let replies = session.checkpoints().iter().map(|checkpoint| {
        let messages = session.transcript().get(from..checkpoint.messages).unwrap_or_default();
        from = checkpoint.messages;
        let reply = messages.iter().rev().find_map(|message| match &**message {
            Message::Assistant(reply) => Some(reply),
            _ => None,
        });
        let Some(reply) = reply else { return String::new() };
        let calls = reply.tool_calls.iter().map(|call| {
            let arguments = call.arguments.as_json().map_or("…", |arguments| arguments.text());
            format!("{}{arguments}", call.name)
        });
        calls.chain(reply.content.clone()).collect::<Vec<_>>().join(" ")
    });
    replies.collect()
}
