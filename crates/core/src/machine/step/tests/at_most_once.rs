//! Tools that must not run twice: their start is recorded before they run, and they are in doubt
//! after a takeover.

use expect_test::expect;
use serde_json::json;

use crate::agent::AnyAgent;
use crate::event::{Event, Trigger};
use crate::testing::{Hand, action_text, builder, built, calls, echo, text};
use crate::tool::EffectClass;

fn agent() -> AnyAgent {
    let pay = || echo("pay").effect(EffectClass::AtMostOnce);
    let close = echo("close").effect(EffectClass::AtMostOnce).finish_with();
    built(builder().tool(pay()).tool(echo("search")).tool(close))
}

fn start(hand: &mut Hand, call: &str) {
    let call = call.into();
    hand.put(Event::ToolStarted { call, attempt: 1, timeout_ms: Some(5) }).unwrap();
}

#[test]
fn its_start_is_recorded_before_it_runs() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([("search", json!({})), ("pay", json!({"x": 9}))]), text("Paid.")]);
    expect![[r#"
        reply 1: 1.0 search({}), 1.1 pay({"x":9})
        started 1.1, try 1
        finished 1.1: {"x":9}
        finished 1.0: {}
        closed 1
        reply 2: "Paid."
        closed 2
        ended completed: "Paid."
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn each_call_is_started_separately() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("pay", json!({})), ("pay", json!({}))]));
    let all = "run 1.0 try 1, 1.1 try 1 at most once, 1.2 try 1 at most once";
    assert_eq!(action_text(&hand.next()), all);
    start(&mut hand, "1.1");
    hand.start(Trigger::Recover).unwrap();
    let waited = "run 1.0 try 2, 1.1 try 2 in doubt, 1.2 try 2 at most once";
    assert_eq!(action_text(&hand.next()), waited, "a queued call did not run");
}

#[test]
fn an_at_most_once_finish_tool_is_started_in_its_phase() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("close", json!({})), ("search", json!({}))]));
    assert_eq!(action_text(&hand.next()), "run 1.1 try 1");
    hand.result("1.1", json!({}));
    assert_eq!(action_text(&hand.next()), "run finish tool 1.0 try 1 at most once");
    start(&mut hand, "1.0");
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "run finish tool 1.0 try 2 in doubt");
}

#[test]
fn after_a_takeover_a_started_call_is_in_doubt_and_others_are_not() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("pay", json!({}))]));
    start(&mut hand, "1.1");
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2, 1.1 try 2 in doubt");
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 3, 1.1 try 3 in doubt", "still in doubt");
}

#[test]
fn a_call_that_its_own_run_started_is_in_doubt_for_another_process() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({}))]));
    start(&mut hand, "1.0");
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2 in doubt");
}

#[test]
fn a_call_that_was_not_executed_is_started_again_by_its_new_owner() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({}))]));
    start(&mut hand, "1.0");
    hand.start(Trigger::Recover).unwrap();
    let call = "1.0".into();
    hand.put(Event::ToolStarted { call, attempt: 2, timeout_ms: Some(7) }).unwrap();
    let step = hand.session().open_step().unwrap();
    let started = step.call(&"1.0".into()).unwrap().started.clone().unwrap();
    assert_eq!((started.run.as_str(), started.attempt, started.timeout_ms), ("r2", 2, Some(7)));
}

#[test]
fn every_run_of_a_session_has_a_greater_version_than_those_before_it() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({}))]));
    hand.start(Trigger::Recover).unwrap();
    hand.start(Trigger::Recover).unwrap();
    let versions: Vec<_> = hand.session().runs().map(|run| run.version).collect();
    assert_eq!(versions.len(), 3);
    assert!(versions.is_sorted_by(|one, next| one < next), "{versions:?}");
}

#[test]
fn calls_that_are_refused_are_never_started() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({"x": "much"}))]));
    assert_eq!(action_text(&hand.next()), "call model 2");
    assert!(!hand.story().contains("started"), "{}", hand.story());
}

#[test]
fn pure_and_idempotent_tools_are_not_recorded_and_never_in_doubt() {
    for class in [EffectClass::Pure, EffectClass::Idempotent] {
        let mut hand = Hand::new(&built(builder().tool(echo("read").effect(class))));
        hand.reply(calls([("read", json!({}))]));
        assert_eq!(action_text(&hand.next()), "run 1.0 try 1");
        hand.start(Trigger::Recover).unwrap();
        assert_eq!(action_text(&hand.next()), "run 1.0 try 2");
    }
}
