//! The record of a turn in a session's log.

use std::collections::BTreeMap;

use helix_agents_core::message::{Message, UserMessage};
use helix_agents_core::session::{Checkpoint, RunRecord, Session, StepRecord};
use helix_agents_core::usage::Usage;

/// The record of one turn: its closed steps, its last run and its token usage.
#[derive(Debug, Clone)]
pub(crate) struct TurnRecord<'f> {
    pub(crate) turn: u32,
    /// The last run of the turn.
    pub(crate) run: Option<&'f RunRecord>,
    /// The closed steps, oldest first.
    pub(crate) steps: Vec<(&'f Checkpoint, &'f StepRecord)>,
    pub(crate) usage: Usage,
}

impl<'f> TurnRecord<'f> {
    fn new(turn: u32) -> Self {
        Self { turn, run: None, steps: Vec::new(), usage: Usage::default() }
    }

    /// Returns the record of one turn. For the present turn, the cost depends on this turn only.
    pub(crate) fn of(session: &'f Session, turn: u32) -> Self {
        let later = session.closed_steps().rev();
        let later = later.skip_while(|(checkpoint, _)| checkpoint.turn > turn);
        let mut steps: Vec<_> = later.take_while(|(step, _)| step.turn == turn).collect();
        steps.reverse();
        let run = session.runs().rev().find(|run| run.turn == turn);
        let usage = if turn == session.turn() {
            session.turn_usage()
        } else {
            session.usage_by_turn().remove(&turn).unwrap_or_default()
        };
        Self { turn, run, steps, usage }
    }

    /// Returns the records of all turns, oldest first. The cost is linear in the length of the session.
    pub(crate) fn all(session: &'f Session) -> Vec<Self> {
        let turns = turns(session).into_iter();
        let mut records: BTreeMap<_, _> = turns.map(|turn| (turn, Self::new(turn))).collect();
        for run in session.runs() {
            if let Some(record) = records.get_mut(&run.turn) {
                record.run = Some(run);
            }
        }
        for step in session.closed_steps() {
            if let Some(record) = records.get_mut(&step.0.turn) {
                record.steps.push(step);
            }
        }
        for (turn, usage) in session.usage_by_turn() {
            if let Some(record) = records.get_mut(&turn) {
                record.usage = usage;
            }
        }
        records.into_values().collect()
    }
}

/// Returns the numbers of the turns of a session that its transcript contains, oldest first.
#[must_use]
pub fn turns(session: &Session) -> Vec<u32> {
    let messages = session.transcript().iter().map(|message| message.turn());
    let mut turns: Vec<_> = messages.chain([session.turn()]).filter(|turn| *turn > 0).collect();
    // A rewind can leave runs of removed turns, but no messages.
    turns.sort_unstable();
    turns.dedup();
    turns
}

/// Returns the visible messages of users by their turns, each with its position in the transcript.
pub(crate) fn user_messages(session: &Session) -> BTreeMap<u32, Vec<(usize, &UserMessage)>> {
    let mut messages: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, message) in session.transcript().iter().enumerate() {
        if let Message::User(user) = &**message
            && !user.hidden
        {
            messages.entry(message.turn()).or_default().push((index, user));
        }
    }
    messages
}
