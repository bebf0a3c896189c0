//! The state of the remote conversation, derived from the transcript of the local session.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::llm::LlmRequest;
use helix_agents_core::message::{Message, SharedMessage, UserMessage};
use helix_agents_core::session::Submission;
use sha2::{Digest as _, Sha256};

use super::questions;

/// The maximum number of servers that a chain of remote agents can have.
const MAX_DEPTH: u32 = 8;

/// The number of characters of a digest.
const DIGEST_CHARS: usize = 32;

/// The beginning of the ids of remote sessions.
const PREFIX: &str = "remote-";

/// The state of the remote conversation at the start of a model call.
#[derive(Debug)]
pub(super) struct Conversation {
    /// The id of the remote session.
    pub(super) session: SessionId,
    /// The messages of the turn that the server might not have received yet, with the ids of their runs.
    pub(super) messages: Vec<(RunId, UserMessage)>,
    /// The answers that the server might not have received yet.
    pub(super) answers: Vec<Submission>,
    /// Whether the last reply was broken off by an interrupt.
    pub(super) was_interrupted: bool,
    /// Whether the server has processed a part of the conversation, so that the remote session exists.
    pub(super) has_history: bool,
    /// The last chunk of the remote stream that earlier replies of the turn have shown.
    pub(super) shown: u64,
}

impl Conversation {
    /// Reads the transcript of a model call.
    ///
    /// # Errors
    /// Returns [`ErrorCode::SubAgentDispatchFailed`] if too many servers call each other.
    pub(super) fn of(request: &LlmRequest<'_>) -> Result<Self> {
        let session = remote_session(request.session, request.created_at)?;
        let turn = request.messages.last().map_or(0, SharedMessage::turn);
        let replies = request.messages.iter().enumerate().rev();
        let replies = replies.filter_map(|(index, message)| match &**message {
            Message::Assistant(reply) => Some((index, message.turn(), &reply.tool_calls[..])),
            _ => None,
        });
        // The last reply after which everything was sent.
        let (mut since, mut calls) = (0, &[][..]);
        let (mut was_interrupted, mut has_history, mut last_wait) = (false, false, None);
        for (index, turn_of_reply, reply) in replies {
            let wait = reply.iter().find_map(questions::waited);
            if wait.is_none_or(|wait| wait.sent) {
                has_history = true;
                // An earlier turn has ended: what it waited for no longer matters.
                if turn_of_reply == turn {
                    last_wait = last_wait.or(wait);
                    was_interrupted = reply.is_empty();
                    (since, calls) = (index + 1, reply);
                }
                break;
            }
            if turn_of_reply == turn {
                last_wait = last_wait.or(wait);
            }
        }
        let asked_after = calls.iter().find_map(questions::asked_after).unwrap_or(0);
        let mut conversation = Self {
            messages: Vec::new(),
            answers: Vec::new(),
            was_interrupted: last_wait.map_or(was_interrupted, |wait| wait.resumes),
            has_history,
            shown: last_wait.map_or(asked_after, |wait| wait.after),
            session,
        };
        for (index, message) in request.messages.iter().enumerate().skip(since) {
            match &**message {
                Message::User(user) if message.turn() == turn => {
                    let run = conversation.run_of(index, user);
                    // The server accepts no hidden messages. Corrections of the output are hidden.
                    let user = UserMessage { hidden: false, ..user.clone() };
                    conversation.messages.push((run, user));
                    conversation.was_interrupted = false;
                }
                Message::Tool(result) => {
                    let call = calls.iter().find(|call| call.id == result.tool_call_id);
                    let Some(call) = call else { continue };
                    let request = digest(&[conversation.session.as_str(), call.id.as_str()]);
                    conversation.answers.extend(questions::answer(call, result, request)?);
                }
                Message::System { .. } | Message::User(_) | Message::Assistant(_) => {}
            }
        }
        Ok(conversation)
    }

    /// Returns the id of the run that a message starts. The text is included because a rewind can reuse the index.
    fn run_of(&self, index: usize, message: &UserMessage) -> RunId {
        RunId::from(digest(&[self.session.as_str(), &index.to_string(), &message.content]))
    }
}

/// Returns the id of the remote session of a local one. It contains the depth of the chain of servers.
///
/// # Errors
/// Returns [`ErrorCode::SubAgentDispatchFailed`] if the chain is too long.
pub(super) fn remote_session(local: &SessionId, created_at: Timestamp) -> Result<SessionId> {
    let depth = depth_of(local).unwrap_or(0).saturating_add(1);
    if depth > MAX_DEPTH {
        let message = format!("a chain of remote agents can have at most {MAX_DEPTH} servers");
        return Err(
            Error::new(ErrorCode::SubAgentDispatchFailed, message).with_context("session", local)
        );
    }
    let digest = digest(&[local.as_str(), &created_at.0.to_string()]);
    Ok(SessionId::from(format!("{PREFIX}{depth}-{digest}")))
}

/// Returns the depth of a session of a server that another server has started.
fn depth_of(session: &SessionId) -> Option<u32> {
    let (depth, rest) = session.as_str().strip_prefix(PREFIX)?.split_once('-')?;
    let digest = rest.get(..DIGEST_CHARS)?;
    let is_digest = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    depth.parse().ok().filter(|_| is_digest)
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    bytes.iter().take(DIGEST_CHARS / 2).map(|byte| format!("{byte:02x}")).collect()
}
