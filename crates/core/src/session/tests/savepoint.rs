//! Tests of rollback: a rolled back session equals the session at the savepoint.

use serde_json::json;

use crate::agent::AnyAgent;
use crate::event::Trigger;
use crate::testing::{Hand, builder, built, calls, echo, text};

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")))
}

fn view(hand: &Hand) -> String {
    format!("{:?}", hand.session())
}

/// Applies `onward`, rolls back, and checks that the session is unchanged.
#[track_caller]
fn check_rollback(mut hand: Hand, onward: impl FnOnce(&mut Hand)) {
    let (before, version) = (view(&hand), hand.session().position().version);
    let savepoint = hand.session().savepoint();
    assert_eq!(savepoint.position().version, version);
    onward(&mut hand);
    assert_ne!(view(&hand), before, "`onward` must change the session");
    hand.iterator.session_mut().rollback(savepoint);
    assert_eq!(view(&hand), before);
}

#[test]
fn a_run_is_rolled_back() {
    check_rollback(Hand::new(&agent()), |hand| {
        hand.drive([calls([("search", json!({}))]), text("x")]);
    });
}

#[test]
fn several_runs_are_rolled_back() {
    check_rollback(Hand::new(&agent()), |hand| {
        hand.drive([text("x")]);
        hand.start(Trigger::Continue).unwrap();
        hand.say("again");
        hand.start(Trigger::Recover).unwrap();
        hand.drive([text("y")]);
    });
}

#[test]
fn a_half_finished_step_is_restored() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("search", json!({}))]));
    hand.result("1.1", json!(1));
    check_rollback(hand, |hand| {
        hand.abort();
        hand.drive([]);
    });
}

#[test]
fn requests_are_rolled_back() {
    check_rollback(Hand::new(&agent()), |hand| {
        hand.interrupt();
        hand.abort();
    });
}

#[test]
fn a_rolled_back_session_continues_as_if_nothing_happened() {
    let mut hand = Hand::new(&agent());
    let mut other = Hand::new(&agent());
    let savepoint = hand.session().savepoint();
    hand.drive([calls([("search", json!({}))])]);
    hand.iterator.session_mut().rollback(savepoint);
    hand.drive([text("other")]);
    other.drive([text("other")]);
    assert_eq!(view(&hand), view(&other));
}
