//! The messages of a session, for a page that opens it.

use helix_agents_core::id::SessionId;
use helix_agents_core::message::{ContentPart, MediaSource, UserMessage};
use helix_agents_core::stream::StoredChunk;

use super::ids::user_message_id;
use super::{
    Assembler, Options, PartState, Progress, Role, TextPart, Translator, UiChunk, UiMessage,
    UiPart, message_id,
};
use crate::turn::{Folds, TurnRecord, replay_record, user_messages};

/// Returns the messages of a session, oldest first: those of each turn's user, and one of the agent for each turn.
///
/// `live` are the chunks of effects in progress, as a session's page gives them. The messages equal those that a page
/// has built live, except for data that is not recorded: custom data, and text of model calls that failed. Questions
/// that sub-agents asked in earlier turns are only included if the folds of these sub-agents are given. The cost is
/// linear in the length of the session.
///
/// # Examples
///
/// ```
/// use helix_agents_core::session::Session;
/// use helix_agents_protocols::ai_sdk::{Options, history};
/// use helix_agents_protocols::turn::Folds;
///
/// let session = Session::new("chat".into());
/// assert!(history(&Folds::new(&session), &[], Options::default()).is_empty());
/// ```
#[must_use]
pub fn history(folds: &Folds<'_>, live: &[StoredChunk], options: Options) -> Vec<UiMessage> {
    let session = folds.root();
    let mut users = user_messages(session);
    let mut messages = Vec::new();
    for record in TurnRecord::all(session) {
        let turn = record.turn;
        let of_turn = users.remove(&turn).unwrap_or_default().into_iter().zip(1..);
        messages
            .extend(of_turn.map(|((_, message), number)| {
                of_user_message(session.id(), turn, number, message)
            }));
        let is_present = turn == session.turn();
        let message = of_record(folds, &record, if is_present { live } else { &[] }, options);
        let is_empty = message.parts.is_empty() && session.current_run().is_some() && is_present;
        messages.extend(Some(message).filter(|_| !is_empty));
    }
    messages
}

/// Returns the agent's message of one turn.
#[must_use]
pub fn history_of_turn(
    folds: &Folds<'_>,
    turn: u32,
    live: &[StoredChunk],
    options: Options,
) -> UiMessage {
    of_record(folds, &TurnRecord::of(folds.root(), turn), live, options)
}

fn of_record(
    folds: &Folds<'_>,
    record: &TurnRecord<'_>,
    live: &[StoredChunk],
    options: Options,
) -> UiMessage {
    let mut translator = Translator::of_turn(folds, record.turn, record.run, options);
    let mut assembler = Assembler::new(message_id(folds.root().id(), record.turn));
    let mut out = Vec::new();
    let mut assemble = |out: &mut Vec<UiChunk>| {
        for chunk in out.drain(..) {
            // A violation would be an error of the translator, and only costs the chunk.
            drop(assembler.add(&chunk));
        }
    };
    // The turn is shown whether it has ended or not.
    for chunk in replay_record(folds, record) {
        let (Progress::Open | Progress::Done | Progress::Broken) =
            translator.push_chunk(None, &chunk, &mut out);
        assemble(&mut out);
    }
    for stored in live {
        let (Progress::Open | Progress::Done | Progress::Broken) =
            translator.push(stored, &mut out);
        assemble(&mut out);
    }
    let mut message = assembler.into_settled();
    message.metadata = Some(translator.metadata(message.metadata.take()));
    message
}

fn of_user_message(
    session: &SessionId,
    turn: u32,
    number: usize,
    message: &UserMessage,
) -> UiMessage {
    let id = user_message_id(session, turn, number, message);
    let parts = message.parts().into_iter().filter_map(|part| match part {
        ContentPart::Text(text) => {
            let state = Some(PartState::Done);
            Some(UiPart::Text(TextPart { id: None, text: text.to_owned(), state }))
        }
        ContentPart::Media(media) => {
            let url = match &media.source {
                MediaSource::Base64(bytes) => format!("data:{};base64,{bytes}", media.media_type),
                MediaSource::Url(url) => url.to_string(),
                // Only its provider can read the file.
                _ => return None,
            };
            let filename = media.name.as_ref().map(ToString::to_string);
            Some(UiPart::File { media_type: media.media_type.to_string(), url, filename })
        }
        _ => None,
    });
    UiMessage { id, role: Role::User, metadata: None, parts: parts.collect() }
}
