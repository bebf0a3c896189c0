//! Tests of runs, turns, checkpoints, times and totals.

use std::sync::Arc;

use serde_json::json;

use crate::agent::AnyAgent;
use crate::clock::Timestamp;
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{Event, RecordedEvent, ToolFinish, ToolOutcome, Trigger, decode, encode};
use crate::id::{AppendId, SessionId};
use crate::session::{RunStatus, Session};
use crate::store::{Position, SessionStatus, StoredAppend};
use crate::stream::{ChunkKind, Effect};
use crate::testing::{Entry, Hand, builder, built, calls, echo, error_step, finish, text};

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")))
}

/// Returns a session with a completed turn of two steps and a second turn that was interrupted,
/// resumed and taken over.
fn long() -> Hand {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([("search", json!({}))]), text("One.")]);
    hand.start(Trigger::Continue).unwrap();
    hand.say("again");
    hand.drive([calls([("search", json!({}))])]);
    hand.interrupt();
    hand.drive([]);
    hand.start(Trigger::Resume).unwrap();
    hand.start(Trigger::Recover).unwrap();
    hand.drive([text("Two.")]);
    hand
}

/// Returns the log as a store would return it, with one append per event, at intervals of one
/// second.
fn recorded(log: &[Entry]) -> Vec<StoredAppend> {
    let append = |(index, (run, event)): (usize, &Entry)| StoredAppend {
        first: index as u64 + 1,
        count: 1,
        id: AppendId::from(format!("a{index}")),
        run: run.clone(),
        schema: crate::event::SCHEMA,
        at: Timestamp(1000 * (index as i64 + 1)),
        body: encode(std::slice::from_ref(event)).unwrap(),
    };
    log.iter().enumerate().map(append).collect()
}

fn folded(log: &[Entry]) -> Session {
    let mut session = Session::new(SessionId::from("s"));
    for append in recorded(log) {
        session.apply_append(&append).unwrap();
    }
    session
}

#[test]
fn every_run_is_kept_with_its_turn_reason_status_and_steps() {
    let hand = long();
    let runs: Vec<_> = hand
        .session()
        .runs()
        .map(|run| (run.id.as_str(), run.turn, run.trigger, run.status, run.steps))
        .collect();
    assert_eq!(
        runs,
        [
            ("r1", 1, Trigger::Execute, RunStatus::Completed, 2),
            ("r2", 2, Trigger::Continue, RunStatus::Interrupted, 1),
            ("r3", 2, Trigger::Resume, RunStatus::Superseded, 0),
            ("r4", 2, Trigger::Recover, RunStatus::Completed, 1),
        ]
    );
    assert_eq!(hand.session().current_run(), None);
    assert_eq!(hand.session().last_run().unwrap().id.as_str(), "r4");
    assert_eq!(hand.session().run(&"r2".into()).unwrap().reason.as_deref(), Some("stop"));
    assert_eq!(hand.session().turn(), 2);
}

#[test]
fn the_status_follows_the_runs() {
    let mut hand = Hand::new(&agent());
    assert_eq!(hand.session().status(), SessionStatus::Active);
    hand.drive([text("x")]);
    assert_eq!(hand.session().status(), SessionStatus::Completed);
    hand.start(Trigger::Continue).unwrap();
    assert_eq!(hand.session().status(), SessionStatus::Active);
    hand.say("again");
    hand.drive([error_step(crate::error::ErrorCode::ModelError, true)]);
    assert_eq!(hand.session().status(), SessionStatus::Failed);
    hand.start(Trigger::Resume).unwrap();
    hand.abort();
    hand.drive([]);
    assert_eq!(hand.session().status(), SessionStatus::Aborted);
}

#[test]
fn step_numbers_never_repeat_and_every_closed_step_has_a_checkpoint() {
    let session = folded(&long().log);
    let checkpoints: Vec<_> = session
        .checkpoints()
        .iter()
        .map(|checkpoint| {
            let at = checkpoint.at.unwrap().0;
            (checkpoint.step, checkpoint.turn, checkpoint.version, checkpoint.messages, at)
        })
        .collect();
    let closes: Vec<_> = long()
        .log
        .iter()
        .enumerate()
        .filter(|(_, (_, event))| matches!(event, Event::StepClosed { .. }))
        .map(|(index, _)| index as u64 + 1)
        .collect();
    let expected: Vec<_> = [(1, 1, 3), (2, 1, 4), (3, 2, 7), (4, 2, 8)]
        .into_iter()
        .zip(closes)
        .map(|((step, turn, messages), version)| {
            (step, turn, version, messages, 1000 * i64::try_from(version).unwrap())
        })
        .collect();
    assert_eq!(checkpoints, expected);
}

#[test]
fn times_are_those_of_the_store() {
    let session = folded(&long().log);
    let times: Vec<_> =
        session.runs().map(|run| (run.started.unwrap().0, run.ended.unwrap().0)).collect();
    let at = |matches: fn(&Event) -> bool| -> Vec<i64> {
        let log = long().log;
        let hits = log.iter().enumerate().filter(|(_, (_, event))| matches(event));
        hits.map(|(index, _)| 1000 * (index as i64 + 1)).collect()
    };
    let starts = at(|event| matches!(event, Event::RunStarted { .. }));
    let ends = at(|event| matches!(event, Event::RunEnded { .. }));
    // The third run has no end event: it counts as ended when the fourth one started.
    let expected =
        [(starts[0], ends[0]), (starts[1], ends[1]), (starts[2], starts[3]), (starts[3], ends[2])];
    assert_eq!(times, expected);
}

#[test]
fn tokens_and_tool_calls_add_up_over_the_whole_session() {
    let session = folded(&long().log);
    let usage = session.usage();
    let tokens = usage.tokens;
    assert_eq!((tokens.input_tokens, tokens.output_tokens), (40, 20), "four model calls");
    assert_eq!(usage.tool_calls, 2);
}

#[test]
fn recorded_amounts_add_up_by_type_and_name() {
    let mut hand = Hand::new(&agent());
    for (name, amount) in [("web", 1.5), ("disk", 2.0), ("web", 0.25)] {
        let (source_type, source_name) = ("tool".to_owned(), name.to_owned());
        hand.put(Event::UsageRecorded {
            source_type,
            source_name,
            amount,
            call: None,
            success: true,
        })
        .unwrap();
    }
    let totals = &hand.session().usage().custom["tool"];
    assert_eq!((totals["disk"], totals["web"]), (2.0, 1.75));
}

#[test]
fn the_summary_contains_the_data_for_session_lists() {
    let mut hand = Hand::new(&agent());
    let summary = hand.session().summary();
    assert_eq!(summary.run.unwrap().as_str(), "r1");
    assert_eq!((summary.status, &*summary.runtime), (SessionStatus::Active, "hand"));
    hand.drive([text("x")]);
    let summary = hand.session().summary();
    assert_eq!((summary.run, summary.status), (None, SessionStatus::Completed));
    assert_eq!(&*summary.runtime, "hand", "the runtime of the last run");
}

#[test]
fn outcomes_of_effects_are_known_once_they_are_recorded() {
    let mut hand = Hand::new(&agent());
    let has = |hand: &Hand, effect: Effect| hand.session().has_outcome(&effect);
    let (model, call) = (Effect::Model { step: 1 }, |id: &str| Effect::Tool { call: id.into() });
    assert!(!has(&hand, model.clone()));
    hand.reply(calls([("search", json!({})), ("search", json!({}))]));
    assert!(has(&hand, model));
    assert!(!has(&hand, call("1.0")));
    hand.result("1.0", json!(1));
    assert!(has(&hand, call("1.0")) && !has(&hand, call("1.1")));
    hand.result("1.1", json!(1));
    assert!(has(&hand, call("1.1")), "the step is closed");
    assert!(!has(&hand, call("2.0")));
}

#[test]
fn an_attempt_has_no_outcome_if_its_call_was_answered_without_it() {
    let mut hand = Hand::new(&agent());
    let has =
        |hand: &Hand, call: &str| hand.session().has_outcome(&Effect::Tool { call: call.into() });
    hand.reply(calls([("search", json!({})), ("search", json!({})), ("search", json!({}))]));
    hand.result("1.0", json!(1));
    let unknown = || ToolOutcome::Error(ErrorRecord::new(ErrorCode::ToolOutcomeUnknown, "aborted"));
    hand.put(ToolFinish::without_run("1.1".into(), unknown()).into()).unwrap();
    assert!(has(&hand, "1.0") && !has(&hand, "1.1") && !has(&hand, "1.2"));
    hand.put(ToolFinish::without_run("1.2".into(), unknown()).into()).unwrap();
    hand.drive([text("x")]);
    assert!(has(&hand, "1.0") && !has(&hand, "1.1"), "closing the step does not change that");
}

#[test]
fn a_log_with_a_gap_or_a_repetition_is_refused() {
    let appends = recorded(&long().log);
    let mut session = Session::new(SessionId::from("s"));
    session.apply_append(&appends[0]).unwrap();
    for wrong in [&appends[2], &appends[0]] {
        let error = session.apply_append(wrong).unwrap_err();
        assert!(error.message().contains("gap"), "{error}");
    }
    session.apply_append(&appends[1]).unwrap();
    assert_eq!(*session.position(), Position { version: 2, append: "a1".into() });
}

#[test]
fn settling_sets_the_position_and_time_of_applied_events() {
    let mut hand = Hand::new(&agent());
    hand.drive([text("x")]);
    let session = hand.iterator.session_mut();
    assert_eq!(session.position().append, AppendId::none());
    session.acknowledge("a1".into(), Timestamp(7));
    assert_eq!(session.position().append.as_str(), "a1");
    let run = session.last_run().unwrap();
    assert_eq!((run.started, run.ended), (Some(Timestamp(7)), Some(Timestamp(7))));
    assert_eq!(session.checkpoints()[0].at, Some(Timestamp(7)));
}

#[test]
fn a_result_is_taken_from_the_run_before_if_the_call_is_still_open() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("search", json!({}))]));
    hand.start(Trigger::Recover).unwrap();
    let late = ToolFinish::without_run(
        "1.1".into(),
        crate::event::ToolOutcome::Success(json!("late").into()),
    );
    hand.put_as(Some(&"r1".into()), Event::from(late)).unwrap();
    hand.result("1.0", json!("own"));
    let contents: Vec<_> = folded(&hand.log)
        .transcript()
        .iter()
        .filter_map(|message| match &**message {
            crate::message::Message::Tool(tool) => Some(tool.content.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(contents, [r#""own""#, r#""late""#]);
}

#[test]
fn tags_agent_and_state_come_from_the_creation() {
    let tags = [("k".to_owned(), "v".to_owned())].into();
    let (agent, state) = ("a".into(), json!({"n": 1}).into());
    let created = Event::SessionCreated { agent, tags, state, parent: None };
    let mut session = Session::new(SessionId::from("s"));
    session.apply(&created, None).unwrap();
    assert_eq!(&**session.agent(), "a");
    assert_eq!(session.tags()["k"], "v");
    assert_eq!(**session.state(), json!({"n": 1}));
    assert_eq!(session.turn(), 0);
    assert_eq!(session.runs().count(), 0);
}

#[test]
fn an_append_of_several_events_is_applied_as_a_whole() {
    let events: Vec<_> = long().log[..3].iter().map(|(_, event)| event.clone()).collect();
    let append = StoredAppend {
        first: 1,
        count: 3,
        id: "a".into(),
        run: Some("r1".into()),
        schema: 1,
        at: Timestamp(5),
        body: encode(&events).unwrap(),
    };
    let decoded = decode(&"s".into(), &append).unwrap();
    let places: Vec<_> = decoded.iter().map(|RecordedEvent { seq, at, .. }| (*seq, at.0)).collect();
    assert_eq!(places, [(1, 5), (2, 5), (3, 5)]);
    let mut session = Session::new(SessionId::from("s"));
    session.apply_append(&append).unwrap();
    assert_eq!(*session.position(), append.position());
}

#[test]
fn messages_are_shared_with_the_log_and_not_copied() {
    let mut hand = Hand::new(&built(builder().output_schema(json!({"type": "object"}))));
    hand.drive([finish(json!({}))]);
    let copy = hand.session().clone();
    let (ours, theirs) = (&hand.session().transcript()[1], &copy.transcript()[1]);
    let address = |message: &crate::message::SharedMessage| match &**message {
        crate::message::Message::Assistant(assistant) => Arc::as_ptr(assistant),
        other => panic!("{other:?}"),
    };
    assert_eq!(address(ours), address(theirs));
}

#[test]
fn each_message_has_the_turn_in_which_it_entered_the_transcript() {
    let hand = long();
    let turns = |session: &Session| -> Vec<u32> {
        session.transcript().iter().map(crate::message::SharedMessage::turn).collect()
    };
    assert_eq!(turns(hand.session()), [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(turns(&folded(&hand.log)), turns(hand.session()));
}

#[test]
fn a_message_of_a_turn_without_a_step_belongs_to_that_turn() {
    let mut hand = Hand::new(&agent());
    hand.abort();
    hand.drive([]);
    hand.start(Trigger::Continue).unwrap();
    hand.say("again");
    hand.drive([text("One.")]);
    let turns: Vec<_> = hand.session().transcript().iter().map(|message| message.turn()).collect();
    assert_eq!(turns, [1, 2, 2]);
}

#[test]
fn the_closed_steps_have_their_checkpoints_and_calls() {
    let hand = long();
    let steps = hand.session().closed_steps();
    let steps: Vec<_> = steps
        .map(|(checkpoint, step)| {
            (checkpoint.turn, checkpoint.step, step.reply.step, step.calls.len())
        })
        .collect();
    assert_eq!(steps, [(1, 1, 1, 1), (1, 2, 2, 0), (2, 3, 3, 1), (2, 4, 4, 0)]);
}

#[test]
fn the_chunks_of_started_runs_name_their_turns() {
    let hand = long();
    let events = (1..).zip(hand.log.iter().map(|(_, event)| event));
    let shown = crate::session::event_chunks(hand.session(), events);
    let starts: Vec<_> = shown
        .into_iter()
        .map(|(_, kind)| kind)
        .filter(|kind| matches!(kind, ChunkKind::RunStarted { .. } | ChunkKind::RunResumed))
        .collect();
    let started = |turn| ChunkKind::RunStarted { turn };
    let resumed = ChunkKind::RunResumed;
    assert_eq!(starts, [started(1), started(2), resumed.clone(), resumed]);
}
