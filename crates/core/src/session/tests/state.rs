//! Tests of the custom state: patches of results and hooks, in call order and by phases.

use serde_json::{Value, json};

use crate::agent::AnyAgent;
use crate::event::{Event, FinishOutput, ToolFinish, ToolOutcome, Trigger};
use crate::state::Patch;
use crate::testing::{Hand, builder, built, calls, echo};

#[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Notes {
    notes: Vec<u32>,
    last: u32,
}

fn agent() -> AnyAgent {
    built(builder().state::<Notes>().tool(echo("note")).tool(echo("submit").finish_with()))
}

/// Returns a result whose patch appends `n` to the notes and sets `last` to it.
fn noted(call: &str, n: u32) -> ToolFinish {
    let before = json!({"notes": [], "last": 0});
    let state_patch = Patch::between(&before, &json!({"notes": [n], "last": n}));
    let outcome = ToolOutcome::Success(json!(n).into());
    ToolFinish { state_patch, ..ToolFinish::without_run(call.into(), outcome) }
}

fn put(hand: &mut Hand, finish: ToolFinish) {
    hand.put(Event::from(finish)).unwrap();
}

fn changed(hand: &mut Hand, after: &Value) {
    let patch = Patch::between(&hand.session().step_state(), after);
    hand.put(Event::StateChanged { patch, by: "hook".to_owned() }).unwrap();
}

fn three_notes() -> Hand {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("note", json!({})), ("note", json!({})), ("note", json!({}))]));
    hand
}

#[test]
fn patches_of_a_phase_are_applied_in_call_order_whatever_the_order_of_results() {
    let orders = [["1.0", "1.1", "1.2"], ["1.2", "1.1", "1.0"], ["1.1", "1.2", "1.0"]];
    for order in orders {
        let mut hand = three_notes();
        for call in order {
            let n = 1 + call.chars().last().unwrap().to_digit(10).unwrap();
            put(&mut hand, noted(call, n));
        }
        let expected = json!({"notes": [1, 2, 3], "last": 3});
        assert_eq!(*hand.session().step_state(), expected, "state of the open step, {order:?}");
        assert_eq!(
            **hand.session().state(),
            json!({"notes": [], "last": 0}),
            "the step is still open"
        );
        hand.decide();
        assert_eq!(**hand.session().state(), expected, "{order:?}");
        assert_eq!(*hand.session().step_state(), expected);
    }
}

#[test]
fn finish_tools_change_the_state_after_the_other_tools() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("submit", json!({})), ("note", json!({}))]));
    put(&mut hand, noted("1.1", 1));
    assert_eq!(*hand.session().step_state(), json!({"notes": [1], "last": 1}));
    let mut finish = noted("1.0", 2);
    finish.finish = Some(FinishOutput::Output(json!(2).into()));
    put(&mut hand, finish);
    hand.decide();
    assert_eq!(**hand.session().state(), json!({"notes": [1, 2], "last": 2}));
}

#[test]
fn a_hook_changes_the_state_after_the_tools_and_nothing_is_applied_twice() {
    let mut hand = three_notes();
    put(&mut hand, noted("1.2", 3));
    put(&mut hand, noted("1.0", 1));
    changed(&mut hand, &json!({"notes": [1, 3], "last": 30}));
    assert_eq!(*hand.session().step_state(), json!({"notes": [1, 3], "last": 30}));
    put(&mut hand, noted("1.1", 2));
    assert_eq!(*hand.session().step_state(), json!({"notes": [1, 3, 2], "last": 2}));
    hand.decide();
    assert_eq!(**hand.session().state(), json!({"notes": [1, 3, 2], "last": 2}));
}

#[test]
fn a_hook_between_steps_changes_the_state_at_once() {
    let mut hand = Hand::new(&agent());
    changed(&mut hand, &json!({"notes": [9], "last": 9}));
    assert_eq!(**hand.session().state(), json!({"notes": [9], "last": 9}));
}

#[test]
fn state_outlives_runs_and_turns() {
    let mut hand = three_notes();
    put(&mut hand, noted("1.0", 1));
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(*hand.session().step_state(), json!({"notes": [1], "last": 1}));
    put(&mut hand, noted("1.1", 2));
    put(&mut hand, noted("1.2", 3));
    hand.interrupt();
    hand.drive([]);
    hand.start(Trigger::Continue).unwrap();
    assert_eq!(**hand.session().state(), json!({"notes": [1, 2, 3], "last": 3}));
}

#[test]
fn a_failed_tools_change_is_kept_if_it_was_recorded() {
    let mut hand = three_notes();
    let mut failed = noted("1.0", 1);
    let error = crate::error::ErrorRecord::new(crate::error::ErrorCode::ToolFailed, "no");
    failed.outcome = ToolOutcome::Error(error);
    put(&mut hand, failed);
    assert_eq!(*hand.session().step_state(), json!({"notes": [1], "last": 1}));
}
