//! Tools that must not run twice: recorded before they run, in doubt after a takeover.

use expect_test::expect;
use serde_json::json;

use crate::agent::AnyAgent;
use crate::event::Trigger;
use crate::step::Action;
use crate::testing::{Hand, action_text, builder, built, calls, echo, text};
use crate::tool::EffectClass;

fn agent() -> AnyAgent {
    let pay = || echo("pay").effect(EffectClass::AtMostOnce);
    let close = echo("close").effect(EffectClass::AtMostOnce).finish_with();
    built(builder().tool(pay()).tool(echo("search")).tool(close))
}

fn start(hand: &mut Hand) {
    let Action::StartTools(tasks) = hand.next() else { panic!("{:?}", hand.next()) };
    hand.start_tools(tasks);
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
fn nothing_of_the_phase_runs_before_every_start_is_recorded() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("pay", json!({})), ("pay", json!({}))]));
    assert_eq!(action_text(&hand.next()), "start 1.1 try 1, 1.2 try 1");
    start(&mut hand);
    assert_eq!(action_text(&hand.next()), "run 1.0 try 1, 1.1 try 1, 1.2 try 1");
}

#[test]
fn a_finish_tool_of_the_class_is_started_in_its_own_phase() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("close", json!({})), ("search", json!({}))]));
    assert_eq!(action_text(&hand.next()), "run 1.1 try 1");
    hand.result("1.1", json!({}));
    assert_eq!(action_text(&hand.next()), "start 1.0 try 1");
    start(&mut hand);
    assert_eq!(action_text(&hand.next()), "run finish tool 1.0 try 1");
}

#[test]
fn after_a_takeover_a_started_call_is_in_doubt_and_others_are_not() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("pay", json!({}))]));
    start(&mut hand);
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2, 1.1 try 2 in doubt");
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 3, 1.1 try 3 in doubt", "still");
}

#[test]
fn after_a_takeover_a_call_that_was_not_started_is_started_first() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({}))]));
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "start 1.0 try 2");
    start(&mut hand);
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2", "this run's own start is no doubt");
}

#[test]
fn a_call_that_did_not_happen_may_be_started_again_by_its_new_owner() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("pay", json!({}))]));
    start(&mut hand);
    hand.start(Trigger::Recover).unwrap();
    let call = "1.0".into();
    hand.put(crate::event::Event::ToolStarted { call, attempt: 2, timeout_ms: Some(5) }).unwrap();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2");
    let step = hand.session().open_step().unwrap();
    let started = step.call(&"1.0".into()).unwrap().started.clone().unwrap();
    assert_eq!((started.run.as_str(), started.attempt, started.timeout_ms), ("r2", 2, Some(5)));
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
