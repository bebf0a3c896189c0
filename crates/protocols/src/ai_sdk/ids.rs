//! The ids of messages in a page.

use helix_agents_core::id::SessionId;
use helix_agents_core::message::{Message, UserMessage};
use helix_agents_core::session::Session;

use crate::turn::turns;

/// Returns the id of the assistant message of a turn.
#[must_use]
pub fn message_id(session: &SessionId, turn: u32) -> String {
    format!("{session}-turn-{turn}")
}

/// Returns the id of a user's message: the one that the page gave it, or a generated one. `number` counts the visible
/// messages of users in the turn from 1.
pub(super) fn user_message_id(
    session: &SessionId,
    turn: u32,
    number: usize,
    message: &UserMessage,
) -> String {
    let given = message.id.as_ref().map(ToString::to_string);
    given.unwrap_or_else(|| format!("{session}-turn-{turn}-user-{number}"))
}

/// Returns the turn of a message in the [`history`](super::history), by the id that the page has for it. `None` if the
/// session has no such message.
///
/// # Examples
///
/// ```
/// use helix_agents_core::session::Session;
/// use helix_agents_protocols::ai_sdk::turn_of_message;
///
/// let session = Session::new("chat".into());
/// assert_eq!(turn_of_message(&session, "chat-turn-1"), None);
/// ```
#[must_use]
pub fn turn_of_message(session: &Session, id: &str) -> Option<u32> {
    let turns = turns(session);
    let of_agent = turns.iter().copied().find(|turn| message_id(session.id(), *turn) == id);
    of_agent.or_else(|| {
        let mut counted = (0, 0);
        let mut messages = session.transcript().iter().filter_map(|message| match &**message {
            Message::User(said) if !said.hidden => Some((message.turn(), said)),
            _ => None,
        });
        let found = messages.find(|(turn, said)| {
            counted = if counted.0 == *turn { (*turn, counted.1 + 1) } else { (*turn, 1) };
            user_message_id(session.id(), *turn, counted.1, said) == id
        });
        found.map(|(turn, _)| turn)
    })
}
