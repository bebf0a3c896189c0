//! Calls that are answered without running anything, and calls that run.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::agent::AnyAgent;
use crate::event::Trigger;
use crate::step::{Action, StepResult, StopReason};
use crate::testing::{
    Hand, action_text, builder, built, calls, echo, failing, raw_call, stopped, text,
    transcript_text,
};

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")).tool(failing("broken", "out of order")))
}

fn check(script: Vec<StepResult>, story: &Expect) -> Hand {
    let mut hand = Hand::new(&agent());
    hand.drive(script);
    story.assert_eq(&hand.story());
    hand
}

#[test]
fn text_that_ends_the_turn_is_the_output() {
    check(
        vec![text("Hello!")],
        &expect![[r#"
        reply 1: "Hello!"
        closed 1
        ended completed: "Hello!"
    "#]],
    );
}

#[test]
fn results_are_in_call_order_regardless_of_completion_order() {
    let hand = check(
        vec![
            calls([
                ("search", json!({"x": 1})),
                ("broken", json!({})),
                ("search", json!({"x": 3})),
            ]),
            text("Well."),
        ],
        &expect![[r#"
            reply 1: 1.0 search({"x":1}), 1.1 broken({}), 1.2 search({"x":3})
            finished 1.2: {"x":3}
            finished 1.1: error tool_failed: out of order
            finished 1.0: {"x":1}
            closed 1
            reply 2: "Well."
            closed 2
            ended completed: "Well."
        "#]],
    );
    expect![[r#"
        user: go
        assistant: 1.0 search({"x":1}), 1.1 broken({}), 1.2 search({"x":3})
        tool: 1.0 search = {"x":1}
        tool: 1.1 broken = {"error":"out of order"}
        tool: 1.2 search = {"x":3}
        assistant: "Well."
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
    assert_eq!(hand.session().usage().tool_calls, 3);
}

#[test]
fn an_unknown_tool_is_answered_with_the_names_of_the_tools() {
    check(
        vec![calls([("find", json!({})), ("search", json!({"x": 1}))])],
        &expect![[r#"
        reply 1: 1.0 find({}), 1.1 search({"x":1})
        finished 1.0: error tool_unknown: there is no tool `find`; the tools are: search, broken
        finished 1.1: {"x":1}
        closed 1
    "#]],
    );
}

#[test]
fn arguments_that_do_not_fit_are_answered_and_not_run() {
    let bad = calls([("search", json!({"x": "one", "y": 2}))]);
    let hand = check(
        vec![bad],
        &expect![[r#"
        reply 1: 1.0 search({"x":"one","y":2})
        finished 1.0: error tool_input_invalid: the arguments do not match the schema: at /x: "one" is not of type "integer"; Additional properties are not allowed ('y' was unexpected)
        closed 1
    "#]],
    );
    assert_eq!(hand.session().usage().tool_calls, 0);
}

#[test]
fn arguments_that_do_not_parse_are_never_run() {
    let hand = check(
        vec![raw_call("search", r#"{"x": 1"#)],
        &expect![[r#"
        reply 1: 1.0 search({"x": 1)
        finished 1.0: error tool_call_truncated: the arguments are not valid JSON; the call was not run
        closed 1
    "#]],
    );
    assert_eq!(action_text(&hand.next()), "call model 2");
}

#[test]
fn arguments_that_cannot_be_read_are_never_run() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for raw in [r#"{"x":"\ud83d"}"#, r#"{"x":1e400}"#, &deep] {
        let mut hand = Hand::new(&agent());
        hand.drive([raw_call("search", raw)]);
        let prefix = "finished 1.0: error tool_input_invalid: the arguments cannot be read: ";
        assert!(hand.story().contains(prefix), "{}", hand.story());
        assert_eq!(hand.session().usage().tool_calls, 0);
    }
}

#[test]
fn calls_of_a_truncated_reply_are_never_run_even_if_they_parse() {
    let cut = stopped(calls([("search", json!({"x": 1}))]), StopReason::MaxTokens);
    let hand = check(
        vec![cut],
        &expect![[r#"
        reply 1: 1.0 search({"x":1})
        finished 1.0: error tool_call_truncated: the reply was cut off at the token limit; the call was not run
        closed 1
    "#]],
    );
    assert_eq!(action_text(&hand.next()), "call model 2", "the run continues");
}

#[test]
fn children_and_companions_are_unknown_until_an_agent_has_them() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([("subagent__child", json!({})), ("companion__listChildren", json!({}))])]);
    let errors = hand.story().lines().filter(|line| line.contains("error tool_unknown")).count();
    assert_eq!(errors, 2);
}

#[test]
fn a_result_may_arrive_while_other_calls_run() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("broken", json!({}))]));
    assert_eq!(action_text(&hand.next()), "run 1.0 try 1, 1.1 try 1");
    hand.result("1.1", json!("fixed"));
    assert_eq!(action_text(&hand.next()), "run 1.0 try 1");
    assert_eq!(
        hand.session().transcript().len(),
        2,
        "results enter the transcript when the step closes"
    );
    hand.result("1.0", json!({}));
    assert_eq!(action_text(&hand.next()), "call model 2");
    assert_eq!(hand.session().transcript().len(), 4);
}

#[test]
fn after_a_takeover_open_calls_run_again_as_the_next_attempt() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("broken", json!({}))]));
    hand.result("1.1", json!("fixed"));
    hand.start(Trigger::Recover).unwrap();
    hand.decide();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2");
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 3");
}

#[test]
fn after_a_takeover_a_recorded_reply_is_not_requested_again() {
    let mut hand = Hand::new(&agent());
    hand.reply(text("Hello!"));
    hand.start(Trigger::Recover).unwrap();
    hand.decide();
    assert_eq!(action_text(&hand.next()), r#"end completed: "Hello!""#);
}

#[test]
fn an_open_call_whose_tool_was_removed_gets_tool_missing() {
    let mut before = Hand::new(&agent());
    before.reply(calls([("search", json!({})), ("broken", json!({}))]));
    before.start(Trigger::Recover).unwrap();
    let smaller = built(builder().tool(echo("search")));
    let mut after = Hand::refolded(&smaller, &before.log);
    after.decide();
    let last = after.story().lines().last().unwrap().to_owned();
    assert_eq!(
        last,
        "finished 1.1: error tool_missing: there is no tool `broken`; the tools are: search"
    );
    assert_eq!(action_text(&after.next()), "run 1.0 try 2");
}

#[test]
fn asking_has_no_effect_and_no_run_means_idle() {
    let mut hand = Hand::new(&agent());
    assert_eq!(hand.next(), hand.next());
    assert_eq!(action_text(&hand.next()), "call model 1");
    hand.drive([text("Bye.")]);
    assert_eq!(hand.next(), Action::Idle);
    assert_eq!(hand.iterator.decide().unwrap(), []);
}

#[test]
fn supply_takes_events_of_the_current_run_and_refuses_what_is_not_legal() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({}))]));
    let result = crate::event::Event::from(crate::testing::run_tool(
        &hand.iterator,
        &crate::step::CallTask {
            call: "1.0".into(),
            attempt: 1,
            at_most_once: false,
            in_doubt: false,
        },
    ));
    let version = hand.session().position().version;
    assert!(hand.iterator.supply(&[result.clone(), result]).is_err(), "a second result");
    assert_eq!(hand.session().position().version, version + 1, "the first was taken");
}
