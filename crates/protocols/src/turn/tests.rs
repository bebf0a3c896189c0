//! The events of a turn: companions, custom events, and what a replay contains.

use std::sync::Arc;

use helix_agents_core::event::{Answer, PendingKind};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, StoredChunk};
use helix_agents_core::usage::Usage;

use super::{Folds, TurnEvent, TurnReader, replay};
use crate::testing::*;

const CHILD: &str = "s-sub-1.0";
const COMPANION: &str = "s-agent-ann";

/// Reads chunks, each with its position and attempt, and returns what `take` returns for the events.
fn read<T>(chunks: &[(Option<u64>, Chunk)], take: impl Fn(&TurnEvent<'_>) -> Option<T>) -> Vec<T> {
    let mut reader = TurnReader::new(SESSION.into());
    let mut taken = Vec::new();
    for ((attempt, chunk), seq) in chunks.iter().zip(1..) {
        let attempt = attempt.map(Attempt);
        let stored = StoredChunk { seq, attempt, chunk: Arc::new(chunk.clone()) };
        reader.read_stored(&stored, &mut |event| taken.extend(take(&event)));
    }
    taken
}

/// Returns the sub-agents of the chunks, each with whether it is a companion, and the calls that start.
fn starts(chunks: &[(Option<u64>, Chunk)]) -> Vec<(String, Option<bool>)> {
    read(chunks, |event| match event {
        TurnEvent::SubAgentChanged { sub_agent } => {
            Some((sub_agent.session.to_string(), Some(sub_agent.is_companion)))
        }
        TurnEvent::CallStarted { tool, .. } => Some(((*tool).to_owned(), None)),
        _ => None,
    })
}

#[test]
fn a_sub_agent_whose_start_is_shown_again_is_no_companion() {
    let start = || (Some(1), own(1, sub_agent_start("1.0", CHILD)));
    let chunks = [start(), (None, own(1, discarded(1))), start()];
    let call = ("subagent__poet".to_owned(), None);
    assert_eq!(starts(&chunks), [call, (CHILD.to_owned(), Some(false))]);
}

#[test]
fn a_companion_of_a_sub_agent_is_a_companion() {
    let start = companion_start("2.0", COMPANION, "ann");
    let chunks =
        [(Some(1), own(1, sub_agent_start("1.0", CHILD))), (Some(2), chunk(CHILD, 2, start))];
    assert_eq!(starts(&chunks).last(), Some(&(COMPANION.to_owned(), Some(true))));
}

fn custom_ids(chunks: &[(Option<u64>, Chunk)]) -> Vec<String> {
    read(chunks, |event| match event {
        TurnEvent::Custom { id, .. } => Some((*id).to_owned()),
        _ => None,
    })
}

#[test]
fn another_attempt_of_a_sub_agent_repeats_the_ids_of_its_custom_events() {
    let of_child = |kind| chunk(CHILD, 2, kind);
    let chunks = [
        (Some(1), own(1, sub_agent_start("1.0", CHILD))),
        (Some(2), of_child(custom("note", "1"))),
        (Some(3), of_child(tool_start("2.0", "hidden"))),
        (Some(3), of_child(custom("note", "2"))),
        (Some(3), of_child(custom("note", "3"))),
        (None, own(1, discarded(3))),
        (Some(4), of_child(tool_start("2.0", "hidden"))),
        (Some(4), of_child(custom("note", "4"))),
    ];
    let ids = ["s-sub-1.0#model-2-1", "s-sub-1.0#2.0-1", "s-sub-1.0#2.0-2", "s-sub-1.0#2.0-1"];
    assert_eq!(custom_ids(&chunks), ids);
}

/// A page keeps the data of earlier responses, so a later response must not use their ids for other data.
#[test]
fn a_custom_event_without_an_attempt_has_its_position_as_id() {
    let event = || (None, own(1, custom("note", "1")));
    let chunks = [event(), (None, own(1, text("x"))), event()];
    assert_eq!(custom_ids(&chunks), ["step-1-1", "step-1-3"]);
}

/// Returns the chunks of a replay that ask for something, by the session and the call.
fn questions(folds: &Folds<'_>) -> Vec<(String, String)> {
    let chunks = replay(folds, folds.root().turn()).into_iter();
    let asked = chunks.filter_map(|chunk| match chunk.kind {
        ChunkKind::ToolApprovalRequest { call, .. } => {
            Some((chunk.session.to_string(), call.to_string()))
        }
        ChunkKind::ToolStart { call, client: true, .. } => {
            Some((chunk.session.to_string(), call.to_string()))
        }
        _ => None,
    });
    asked.collect()
}

/// Returns a session whose companion started in the first turn, with a second turn, and the companion that asks.
fn with_companion() -> (Log, Log) {
    let start = child_start("1.0", COMPANION, Some("ann"));
    let mut root = Log::new(SESSION);
    root.say("Start Ann.");
    root.reply("", &["companion__spawnAgent"]);
    root.start_child(&start);
    root.finish("1.0", "running".into());
    root.close_step();
    root.reply("Done.", &[]);
    root.close_step();
    root.complete();
    root.say("And now?");
    let mut companion = Log::of_child(&start, SESSION);
    companion.say("Work.");
    companion.reply("", &["pay", "ask"]);
    let approval = pending("1.0", "pay", PendingKind::Approval { editable: false });
    companion.suspend(&[approval, pending("1.1", "ask", PendingKind::Client)], &[]);
    (root, companion)
}

#[test]
fn a_companions_questions_are_replayed_as_long_as_they_are_open() {
    let (root, mut companion) = with_companion();
    let alone = Folds::new(root.session());
    assert_eq!(alone.missing(), [&SessionId::from(COMPANION)]);
    assert_eq!(questions(&alone), []);

    let question = |call: &str| (COMPANION.to_owned(), call.to_owned());
    let folds = alone.clone().with_child(companion.session());
    assert!(folds.missing().is_empty());
    assert_eq!(questions(&folds), [question("1.0"), question("1.1")]);
    let references: Vec<_> = folds.pending().into_keys().collect();
    assert_eq!(references, ["s-agent-ann#1.0", "s-agent-ann#1.1"]);

    companion.answer("1.0", Answer::Approved { edited: None });
    companion.start(helix_agents_core::event::Trigger::Resume);
    companion.finish("1.0", "paid".into());
    let folds = alone.clone().with_child(companion.session());
    assert_eq!(questions(&folds), [question("1.1")]);
}

#[test]
fn only_the_call_that_started_a_companion_shows_its_start() {
    let start = child_start("1.0", COMPANION, Some("ann"));
    let mut root = Log::new(SESSION);
    root.say("Start Ann twice.");
    root.reply("", &["companion__spawnAgent", "companion__spawnAgent"]);
    root.start_child(&start);
    root.finish("1.0", "running".into());
    root.start_child(&child_start("1.1", COMPANION, Some("ann")));
    root.finish("1.1", "running".into());
    let chunks = replay(&Folds::new(root.session()), 1).into_iter();
    let starts = chunks.filter_map(|chunk| match chunk.kind {
        ChunkKind::SubagentStart { call, companion, .. } => Some((call.to_string(), companion)),
        _ => None,
    });
    assert_eq!(starts.collect::<Vec<_>>(), [("1.0".to_owned(), Some("ann".to_owned()))]);
}

#[test]
fn the_end_of_a_turn_has_the_usage_of_the_turn() {
    let mut root = Log::new(SESSION);
    for turn in 1..=2 {
        root.say("Hello");
        for _ in 0..turn {
            root.reply("", &["weather"]);
            root.finish(&format!("{}.0", root.session().last_step()), "rain".into());
            root.close_step();
        }
        root.reply("Rain.", &[]);
        root.close_step();
        root.complete();
    }
    let usage = |turn| {
        let chunks = replay(&Folds::new(root.session()), turn);
        match &chunks.last().unwrap().kind {
            ChunkKind::RunEnded { usage, .. } => *usage,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(usage(1), Some(Usage::new(20, 4)));
    assert_eq!(usage(2), Some(Usage::new(30, 6)));
}
