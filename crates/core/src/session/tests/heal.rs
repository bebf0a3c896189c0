//! Tests of imported logs (schema 0), which may contain calls without a result.

use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::json;

use crate::agent::AnyAgent;
use crate::clock::Timestamp;
use crate::error::ErrorCode;
use crate::event::{Event, RecordedEvent, ToolOutcome, Trigger};
use crate::executor::Input;
use crate::id::{AppendId, CallId, RequestId, RunId, SessionId};
use crate::session::{Session, StartRun, abort_events, execute_events, resume_events};
use crate::step::find_unpaired_finish_call_id;
use crate::testing::{
    Entry, Hand, builder, built, calls, echo, finish, result_schema, transcript_text,
};

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")).output_schema(result_schema()))
}

/// Returns the fold of an imported log.
fn imported(log: &[Entry]) -> Session {
    try_imported(log).unwrap()
}

fn try_imported(log: &[Entry]) -> crate::error::Result<Session> {
    let mut session = Session::new(SessionId::from("s"));
    for ((run, event), seq) in log.iter().zip(1..) {
        let (at, run, event) = (Timestamp(0), run.clone(), event.clone());
        session.apply_recorded(&RecordedEvent { seq, at, run, schema: 0, event })?;
    }
    Ok(session)
}

/// Returns the log without the results of these calls.
fn without(log: &[Entry], calls: &[&str]) -> Vec<Entry> {
    let kept = |(_, event): &&Entry| match event {
        Event::ToolFinished(finish) => !calls.contains(&finish.call.as_str()),
        _ => true,
    };
    log.iter().filter(kept).cloned().collect()
}

/// Returns an imported session of two turns. In the first turn, the `__finish__` call has no
/// result, in the second turn, other calls have none.
fn legacy() -> Session {
    let mut hand = Hand::new(&agent());
    hand.drive([finish(json!({"result": "one"}))]);
    hand.start(Trigger::Continue).unwrap();
    hand.say("again");
    let three = calls([
        ("search", json!({"x": 1})),
        ("search", json!({"x": 2})),
        ("search", json!({"x": 3})),
    ]);
    hand.drive([three, finish(json!({"result": "two"}))]);
    imported(&without(&hand.log, &["1.0", "2.0", "2.2"]))
}

fn start_run() -> StartRun {
    StartRun::new(RunId::from("new"), "hand", 0)
}

fn reopened(session: &mut Session) -> Vec<Event> {
    let input = Input::from("and now?");
    let events = execute_events(session, &agent(), &start_run(), &input, &BTreeMap::new(), false);
    let events = events.unwrap();
    for event in &events {
        session.apply(event, Some(&"new".into())).unwrap();
    }
    events
}

#[test]
fn an_imported_log_may_contain_unpaired_calls_and_lists_them() {
    let session = legacy();
    assert!(session.needs_heal());
    let unpaired: Vec<_> = session.unpaired_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(unpaired, ["1.0", "2.0", "2.2"]);
    assert_eq!(find_unpaired_finish_call_id(session.transcript()), Some("1.0".into()));
}

#[test]
fn reopening_heals_first_and_places_results_after_those_of_their_message() {
    let mut session = legacy();
    let events = reopened(&mut session);
    assert!(matches!(events[0], Event::HistoryHealed { .. }), "{events:?}");
    assert!(!session.needs_heal());
    expect![[r#"
        user: go
        assistant: 1.0 __finish__({"result":"one"})
        tool: 1.0 __finish__ = {"acknowledged":true}
        user: again
        assistant: 2.0 search({"x":1}), 2.1 search({"x":2}), 2.2 search({"x":3})
        tool: 2.1 search = {"x":2}
        tool: 2.0 search = {"error":"not run: the session was imported without the result"}
        tool: 2.2 search = {"error":"not run: the session was imported without the result"}
        assistant: 3.0 __finish__({"result":"two"})
        tool: 3.0 __finish__ = {"acknowledged":true}
        user: and now?
    "#]]
    .assert_eq(&transcript_text(session.transcript()));
}

#[test]
fn a_second_heal_is_refused() {
    let mut session = legacy();
    let events = reopened(&mut session);
    let text = transcript_text(session.transcript());
    let error = session.apply(&events[0], Some(&"new".into())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::LogInvalid);
    assert_eq!(transcript_text(session.transcript()), text);
    assert_eq!(session.unpaired_calls().count(), 0);
}

#[test]
fn a_log_without_gaps_is_reopened_without_healing() {
    let mut hand = Hand::new(&agent());
    hand.drive([finish(json!({"result": "one"}))]);
    let mut session = imported(&hand.log);
    assert!(!session.needs_heal());
    let events = reopened(&mut session);
    assert!(matches!(events[0], Event::RunStarted { .. }), "{events:?}");
}

#[test]
fn only_a_heal_is_legal_in_a_log_with_unpaired_calls() {
    let session = legacy();
    let started = execute_events_without_heal(&session);
    let request = Event::AbortRequested { request: "q".into(), run: "r2".into(), reason: None };
    for event in started.into_iter().chain([request]) {
        let mut copy = session.clone();
        let error = copy.apply(&event, Some(&"new".into())).unwrap_err();
        assert!(error.message().contains("have to be healed first"), "{error}");
        assert_eq!(format!("{copy:?}"), format!("{session:?}"));
    }
}

fn execute_events_without_heal(session: &Session) -> Vec<Event> {
    let input = Input::from("x");
    let events = execute_events(session, &agent(), &start_run(), &input, &BTreeMap::new(), false);
    events
        .unwrap()
        .into_iter()
        .filter(|event| !matches!(event, Event::HistoryHealed { .. }))
        .collect()
}

#[test]
fn healing_answers_exactly_the_unpaired_calls_each_once() {
    let outcome = || ToolOutcome::Acknowledged;
    let wrong: [&[&str]; 4] =
        [&[], &["1.0", "2.0"], &["1.0", "2.0", "2.1"], &["1.0", "1.0", "2.0"]];
    for calls in wrong {
        let results = calls.iter().map(|call| (CallId::from(*call), outcome())).collect();
        let mut session = legacy();
        let error = session.apply(&Event::HistoryHealed { results }, None).unwrap_err();
        assert!(error.message().contains("exactly the calls"), "{calls:?}: {error}");
    }
}

#[test]
fn an_interrupted_imported_session_is_healed_when_it_is_resumed_or_aborted() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({}))]));
    hand.result("1.0", json!({}));
    hand.interrupt();
    hand.drive([]);
    let session = imported(&without(&hand.log, &["1.0"]));
    let resumed =
        resume_events(&session, &agent(), &start_run(), Some(&"r1".into()), None).unwrap();
    assert!(matches!(resumed[0], Event::HistoryHealed { .. }), "{resumed:?}");
    let aborted = abort_events(&session, &start_run(), RequestId::from("q"), None).unwrap();
    assert!(matches!(aborted[0], Event::HistoryHealed { .. }), "{aborted:?}");
    for events in [resumed, aborted] {
        let mut copy = session.clone();
        for event in &events {
            copy.apply(event, Some(&"new".into())).unwrap();
        }
        copy.acknowledge(AppendId::from("a"), Timestamp(1));
    }
}

#[test]
fn a_live_run_of_an_imported_log_heals_as_its_first_decision() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([("search", json!({}))])]);
    let session = imported(&without(&hand.log, &["1.0"]));
    let mut iterator = crate::step::StepIterator::new(agent(), session);
    let decided = iterator.decide().unwrap();
    assert_eq!(decided.len(), 1);
    assert!(matches!(decided[0], Event::HistoryHealed { .. }), "{decided:?}");
    assert!(!iterator.session().needs_heal());
}

#[test]
fn rolling_back_a_heal_removes_the_healed_results() {
    let mut session = legacy();
    let before = format!("{session:?}");
    let savepoint = session.savepoint();
    reopened(&mut session);
    session.rollback(savepoint);
    assert_eq!(format!("{session:?}"), before);
}

#[test]
fn a_step_of_an_own_log_cannot_close_with_an_open_call() {
    let mut hand = Hand::new(&agent());
    hand.drive([finish(json!({"result": "one"}))]);
    let log = without(&hand.log, &["1.0"]);
    let mut session = Session::new(SessionId::from("s"));
    let refused = log.iter().find_map(|(run, event)| session.apply(event, run.as_ref()).err());
    assert!(refused.unwrap().message().contains("a call of it has no result"));
}

#[test]
fn an_imported_log_is_checked_in_everything_else() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([("search", json!({}))])]);
    let close_of = |step| (Some(RunId::from("r1")), Event::StepClosed { step });
    let mut twice = hand.log.clone();
    twice.push(close_of(1));
    assert!(try_imported(&twice).is_err(), "no step is open");
    let mut other = hand.log.clone();
    let last = other.len() - 1;
    other[last] = close_of(7);
    assert!(try_imported(&other).is_err(), "another step is open");
    assert!(try_imported(&[close_of(1)]).is_err(), "the first event must be the creation");
    let stranger = (Some(RunId::from("r9")), Event::StepClosed { step: 1 });
    other[last] = stranger;
    assert!(try_imported(&other).is_err(), "the event is of another run");
}
