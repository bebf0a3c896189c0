//! The parts of recorded errors that users of a session may read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::id::CallId;
use helix_agents_core::message::{Message, SharedMessage, ToolResultMessage};
use helix_agents_core::session::{RunRecord, Session};
use helix_agents_core::stream::{Chunk, ChunkKind, StoredChunk};
use helix_agents_protocols::has_foreign_message;
use serde_json::json;

/// Removes from recorded errors what only operators may read: the detail of each error, and the message of an error that
/// is the operator's concern. The user gets the code, and the run or the call under which the log of the session has the
/// cause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Redaction {
    shows_all: bool,
}

impl Redaction {
    /// Creates a redaction. With `shows_all`, it changes nothing.
    pub(crate) fn new(shows_all: bool) -> Self {
        Self { shows_all }
    }

    /// Returns the error of a run.
    pub(crate) fn run_error(self, run: &RunRecord) -> Option<ErrorRecord> {
        run.error.as_ref().map(|error| self.record(error, "run", run.id.as_str()))
    }

    /// Returns a chunk.
    pub(crate) fn chunk(self, stored: &StoredChunk) -> Cow<'_, StoredChunk> {
        let chunk = &*stored.chunk;
        let kind = match &chunk.kind {
            ChunkKind::Error { error } if self.applies_to(error) => {
                ChunkKind::Error { error: self.record(error, "run", chunk.run.as_str()) }
            }
            ChunkKind::ToolError { call, tool, error } if self.applies_to(error) => {
                let error = self.record(error, "call", call.as_str());
                ChunkKind::ToolError { call: call.clone(), tool: Arc::clone(tool), error }
            }
            _ => return Cow::Borrowed(stored),
        };
        let chunk = Arc::new(Chunk { kind, ..chunk.clone() });
        Cow::Owned(StoredChunk { chunk, ..stored.clone() })
    }

    /// Returns the messages of a session that users may read, oldest first: without hidden messages.
    pub(crate) fn messages(self, session: &Session) -> Vec<SharedMessage> {
        let foreign = self.foreign_results(session);
        let shown = session.transcript().iter().filter_map(|message| match &**message {
            Message::User(user) if user.hidden => None,
            Message::Tool(result) if foreign.contains(&result.tool_call_id) => {
                Some(SharedMessage::new(Message::Tool(without_cause(result))))
            }
            _ => Some(message.clone()),
        });
        shown.collect()
    }

    /// Returns the calls whose result has a foreign message.
    fn foreign_results(self, session: &Session) -> BTreeSet<CallId> {
        let closed = session.closed_steps().map(|(_, step)| step);
        let calls = closed.chain(session.open_step()).flat_map(|step| &step.calls);
        let finishes = calls.filter_map(|call| call.finish.as_deref());
        let failed = finishes.filter(|finish| match &finish.outcome {
            ToolOutcome::Error(error) => !self.shows_all && has_foreign_message(error),
            _ => false,
        });
        failed.map(|finish| finish.call.clone()).collect()
    }

    fn applies_to(self, error: &ErrorRecord) -> bool {
        !self.shows_all && (error.detail.is_some() || has_foreign_message(error))
    }

    fn record(self, error: &ErrorRecord, place: &str, id: &str) -> ErrorRecord {
        if !self.applies_to(error) {
            return error.clone();
        }
        let mut shown = error.clone().without_detail();
        if has_foreign_message(error) {
            shown.message = cause_is_under(place, id);
        }
        shown
    }
}

fn cause_is_under(place: &str, id: &str) -> String {
    format!("the log of the session has the cause, under the {place} `{id}`")
}

fn without_cause(result: &ToolResultMessage) -> ToolResultMessage {
    let error = cause_is_under("call", result.tool_call_id.as_str());
    ToolResultMessage { content: json!({ "error": error }).to_string(), ..result.clone() }
}

#[cfg(test)]
mod tests;
