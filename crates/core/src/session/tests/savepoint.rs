//! Going back is never having gone.

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

/// Goes on from `hand`, back again, and expects to be where it was.
#[track_caller]
fn there_and_back(mut hand: Hand, onward: impl FnOnce(&mut Hand)) {
    let (before, version) = (view(&hand), hand.session().position().version);
    let savepoint = hand.session().savepoint();
    assert_eq!(savepoint.position().version, version);
    onward(&mut hand);
    assert_ne!(view(&hand), before, "nothing happened");
    hand.iterator.session_mut().rollback(savepoint);
    assert_eq!(view(&hand), before);
}

#[test]
fn from_a_new_run() {
    there_and_back(Hand::new(&agent()), |hand| {
        hand.drive([calls([("search", json!({}))]), text("x")]);
    });
}

#[test]
fn over_the_ends_and_starts_of_runs() {
    there_and_back(Hand::new(&agent()), |hand| {
        hand.drive([text("x")]);
        hand.start(Trigger::Continue).unwrap();
        hand.say("again");
        hand.start(Trigger::Recover).unwrap();
        hand.drive([text("y")]);
    });
}

#[test]
fn from_the_middle_of_a_step() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("search", json!({}))]));
    hand.result("1.1", json!(1));
    there_and_back(hand, |hand| {
        hand.abort();
        hand.drive([]);
    });
}

#[test]
fn over_requests_from_outside() {
    there_and_back(Hand::new(&agent()), |hand| {
        hand.interrupt();
        hand.abort();
    });
}

#[test]
fn what_follows_is_as_if_nothing_had_been() {
    let mut hand = Hand::new(&agent());
    let mut other = Hand::new(&agent());
    let savepoint = hand.session().savepoint();
    hand.drive([calls([("search", json!({}))])]);
    hand.iterator.session_mut().rollback(savepoint);
    hand.drive([text("other")]);
    other.drive([text("other")]);
    assert_eq!(view(&hand), view(&other));
}
