//! Consecutive runs that crash without a result.

use serde_json::json;

use crate::agent::AnyAgent;
use crate::error::ErrorCode;
use crate::event::{ChildStart, Event, ToolOutcome, Trigger};
use crate::id::SessionId;
use crate::session::RunStatus;
use crate::step::Action;
use crate::testing::{Hand, action_text, builder, built, calls, echo, text};

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")).tool(echo("pay")).max_takeovers(3))
}

/// Starts this many runs, each of which takes over from the previous one.
fn taken_over(hand: &mut Hand, times: u32) {
    for _ in 0..times {
        hand.start(Trigger::Recover).unwrap();
    }
}

fn failure(hand: &Hand) -> String {
    hand.session().last_run().unwrap().error.clone().unwrap().to_string()
}

#[test]
fn a_model_call_that_crashes_run_after_run_is_abandoned() {
    let mut hand = Hand::new(&agent());
    taken_over(&mut hand, 2);
    assert!(matches!(hand.next(), Action::CallModel { step: 1, .. }), "{:?}", hand.next());
    taken_over(&mut hand, 1);
    hand.drive([]);
    assert_eq!(
        failure(&hand),
        "crash_loop: 3 attempts in a row crashed before the reply of step 1 was recorded"
    );
}

#[test]
fn five_crashed_runs_are_the_default_limit() {
    let mut hand = Hand::new(&built(builder()));
    taken_over(&mut hand, 4);
    assert!(matches!(hand.next(), Action::CallModel { step: 1, .. }), "{:?}", hand.next());
    taken_over(&mut hand, 1);
    hand.drive([]);
    assert_eq!(
        failure(&hand),
        "crash_loop: 5 attempts in a row crashed before the reply of step 1 was recorded"
    );
}

#[test]
fn a_call_that_crashes_run_after_run_is_abandoned_and_named() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("pay", json!({}))]));
    hand.result("1.0", json!("found"));
    taken_over(&mut hand, 2);
    assert_eq!(action_text(&hand.next()), "run 1.1 try 3");
    taken_over(&mut hand, 1);
    hand.drive([]);
    assert_eq!(
        failure(&hand),
        "crash_loop: the process crashed repeatedly while it ran 1.1 (`pay`)"
    );
    let step = hand.session().closed_step().unwrap();
    let outcomes: Vec<_> =
        step.calls.iter().map(|call| &call.finish.as_ref().unwrap().outcome).collect();
    assert!(matches!(outcomes[0], ToolOutcome::Success(_)), "recorded results stay");
    assert!(matches!(outcomes[1], ToolOutcome::Error(error) if error.is(ErrorCode::CrashLoop)));
}

#[test]
fn a_result_resets_the_crash_count() {
    let mut hand = Hand::new(&agent());
    taken_over(&mut hand, 2);
    hand.reply(calls([("search", json!({})), ("search", json!({})), ("pay", json!({}))]));
    for call in ["1.0", "1.1"] {
        taken_over(&mut hand, 2);
        hand.result(call, json!({}));
    }
    taken_over(&mut hand, 2);
    assert_eq!(action_text(&hand.next()), "run 1.2 try 7");
    assert_eq!(hand.session().takeovers(), 2);
}

#[test]
fn a_turn_that_is_resumed_after_its_end_is_not_counted() {
    let mut hand = Hand::new(&agent());
    for _ in 0..5 {
        taken_over(&mut hand, 2);
        hand.interrupt();
        hand.drive([]);
        assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Interrupted);
        hand.start(Trigger::Resume).unwrap();
        assert_eq!(hand.session().takeovers(), 0);
    }
    hand.drive([text("Done.")]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Completed);
}

#[test]
fn an_abandoned_turn_can_be_resumed() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({}))]));
    taken_over(&mut hand, 3);
    hand.drive([]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Failed);
    hand.start(Trigger::Resume).unwrap();
    assert!(matches!(hand.next(), Action::CallModel { step: 2, .. }), "{:?}", hand.next());
    hand.drive([text("Done.")]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Completed);
}

#[test]
fn a_run_that_only_waits_for_a_child_is_taken_over_any_number_of_times() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({})), ("search", json!({}))]));
    let start = ChildStart {
        call: "1.0".into(),
        session: SessionId::from("child"),
        agent: "helper".into(),
        companion: None,
        allowance: None,
    };
    hand.put(Event::ChildStarted(start.into())).unwrap();
    taken_over(&mut hand, 2);
    assert_eq!(hand.session().takeovers(), 2, "a call of the run itself is open");
    hand.result("1.1", json!({}));
    taken_over(&mut hand, 10);
    assert_eq!(hand.session().takeovers(), 0, "only the child's call is open");
}

#[test]
fn calls_that_wait_for_a_child_are_not_abandoned() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({})), ("search", json!({}))]));
    let start = ChildStart {
        call: "1.0".into(),
        session: SessionId::from("child"),
        agent: "helper".into(),
        companion: None,
        allowance: None,
    };
    hand.put(Event::ChildStarted(start.into())).unwrap();
    taken_over(&mut hand, 3);
    hand.decide();
    let open = hand.session().open_step().unwrap();
    assert!(open.calls[0].finish.is_none() && open.calls[1].finish.is_some());
    hand.result("1.0", json!("from the child"));
    hand.drive([]);
    assert_eq!(
        failure(&hand),
        "crash_loop: the process crashed repeatedly while it ran 1.1 (`search`)"
    );
}

fn repeated(hand: &mut Hand, call: Option<&str>) {
    hand.put(Event::WorkItemRepeated { call: call.map(Into::into) }).unwrap();
}

#[test]
fn attempts_within_a_run_count_like_runs() {
    let mut hand = Hand::new(&agent());
    taken_over(&mut hand, 1);
    repeated(&mut hand, None);
    assert!(matches!(hand.next(), Action::CallModel { step: 1, .. }), "{:?}", hand.next());
    repeated(&mut hand, None);
    hand.drive([]);
    assert_eq!(
        failure(&hand),
        "crash_loop: 3 attempts in a row crashed before the reply of step 1 was recorded"
    );
}

#[test]
fn attempts_of_a_call_count_only_for_that_call() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("pay", json!({}))]));
    taken_over(&mut hand, 1);
    repeated(&mut hand, Some("1.1"));
    repeated(&mut hand, Some("1.1"));
    hand.decide();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2");
    hand.result("1.0", json!("found"));
    hand.drive([]);
    assert_eq!(
        failure(&hand),
        "crash_loop: the process crashed repeatedly while it ran 1.1 (`pay`)"
    );
}

#[test]
fn a_call_that_has_its_result_is_not_retried() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("pay", json!({}))]));
    hand.result("1.0", json!("found"));
    let event = Event::WorkItemRepeated { call: Some("1.0".into()) };
    let error = hand.put(event).unwrap_err();
    assert!(error.message().contains("there is no such open call"), "{error}");
}
