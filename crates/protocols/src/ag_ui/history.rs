//! The messages of a session, for a snapshot.

use helix_agents_core::id::SessionId;
use helix_agents_core::message::{ContentPart, Media, MediaSource, UserMessage};
use helix_agents_core::session::Session;
use serde_json::{Value, json};

use super::translator::replayed;
use super::{Assembler, Message, Options, UserContent};
use crate::turn::{Folds, TurnRecord, user_messages};

/// Returns the messages of a session, oldest first: those of the users, and for each step the reasoning, the reply and
/// the results of its calls. The cost is linear in the length of the session.
///
/// # Examples
///
/// ```
/// use helix_agents_core::session::Session;
/// use helix_agents_protocols::ag_ui::{Options, history};
/// use helix_agents_protocols::turn::Folds;
///
/// let session = Session::new("chat".into());
/// assert!(history(&Folds::new(&session), Options::default()).is_empty());
/// ```
#[must_use]
pub fn history(folds: &Folds<'_>, options: Options) -> Vec<Message> {
    let session = folds.root();
    let mut users = user_messages(session);
    let mut assembler = Assembler::default();
    for record in TurnRecord::all(session) {
        let of_turn = users.remove(&record.turn).unwrap_or_default();
        let of_turn = of_turn.into_iter().zip(1..).map(|((index, message), number)| {
            let message = of_user_message(session.id(), record.turn, number, message);
            (closed_before(session, index), message)
        });
        let mut of_turn = of_turn.peekable();
        for (step, events) in replayed(folds, &record, options) {
            // A message that was queued during the turn follows the steps before it.
            while let Some((_, message)) = of_turn.next_if(|(after, _)| *after < step) {
                assembler.add(message);
            }
            events.iter().for_each(|event| assembler.apply(event));
        }
        of_turn.for_each(|(_, message)| assembler.add(message));
    }
    assembler.into_messages()
}

/// Returns the last step that was closed before a message entered the transcript.
fn closed_before(session: &Session, index: usize) -> u32 {
    let checkpoints = session.checkpoints();
    let before = checkpoints.partition_point(|checkpoint| checkpoint.messages <= index);
    let last = before.checked_sub(1).and_then(|last| checkpoints.get(last));
    last.map_or(0, |checkpoint| checkpoint.step)
}

fn of_user_message(session: &SessionId, turn: u32, number: u32, message: &UserMessage) -> Message {
    let given = message.id.as_ref().map(ToString::to_string);
    let id = given.unwrap_or_else(|| format!("{session}-turn-{turn}-user-{number}"));
    let content = if message.attachments.is_empty() {
        UserContent::Text(message.content.clone())
    } else {
        UserContent::Parts(message.parts().into_iter().filter_map(part).collect())
    };
    Message::User { id, content }
}

fn part(part: ContentPart<'_>) -> Option<Value> {
    Some(match part {
        ContentPart::Text(text) => json!({ "type": "text", "text": text }),
        ContentPart::Media(media) => json!({ "type": kind(media), "source": source(media)? }),
        _ => return None,
    })
}

fn kind(media: &Media) -> &'static str {
    match media.media_type.split_once('/') {
        Some(("image", _)) => "image",
        Some(("audio", _)) => "audio",
        Some(("video", _)) => "video",
        _ => "document",
    }
}

fn source(media: &Media) -> Option<Value> {
    let mime_type = &*media.media_type;
    Some(match &media.source {
        MediaSource::Base64(bytes) => {
            json!({ "type": "data", "value": **bytes, "mimeType": mime_type })
        }
        MediaSource::Url(url) => json!({ "type": "url", "value": **url, "mimeType": mime_type }),
        MediaSource::File { provider, id } => json!({
            "type": "file", "value": **id, "provider": **provider, "mimeType": mime_type,
        }),
        _ => return None,
    })
}
