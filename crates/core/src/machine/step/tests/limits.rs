//! Limits: steps, the user's stop condition, failed model calls.

use expect_test::expect;
use serde_json::json;

use crate::agent::{AgentBuilder, AnyAgent};
use crate::error::ErrorCode;
use crate::event::Trigger;
use crate::session::RunStatus;
use crate::step::{StepResult, StopReason};
use crate::testing::{
    Hand, action_text, builder, built, calls, echo, error_step, more_text, output, result_schema,
    stopped, text,
};

fn looping(steps: u32) -> AgentBuilder {
    builder().tool(echo("search")).max_steps(steps)
}

fn search() -> StepResult {
    calls([("search", json!({}))])
}

fn failure(hand: &Hand) -> String {
    hand.session().last_run().unwrap().error.clone().unwrap().to_string()
}

#[test]
fn the_step_limit_fails_the_run_and_keeps_its_work() {
    let mut hand = Hand::new(&built(looping(2)));
    hand.drive([search(), search(), search()]);
    assert_eq!(failure(&hand), "step_limit: the turn took 2 steps, which is the limit");
    assert_eq!(hand.session().last_step(), 2);
    assert_eq!(hand.session().transcript().len(), 5, "the results of the last step are kept");
}

#[test]
fn an_answer_in_the_last_step_is_an_answer() {
    let mut hand = Hand::new(&built(looping(2)));
    hand.drive([search(), text("Done.")]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Completed);
}

#[test]
fn the_last_step_is_kept_for_the_output() {
    let mut hand = Hand::new(&built(looping(3).output_schema(result_schema())));
    hand.drive([search()]);
    assert_eq!(action_text(&hand.next()), "call model 2");
    hand.drive([search()]);
    assert_eq!(action_text(&hand.next()), "call model 3, forced");
}

#[test]
fn fifty_steps_are_the_default() {
    let mut hand = Hand::new(&built(builder().tool(echo("search"))));
    hand.drive(std::iter::repeat_with(search).take(60));
    assert_eq!(hand.session().last_step(), 50);
    assert!(failure(&hand).starts_with("step_limit"), "{}", failure(&hand));
}

#[test]
fn a_resume_or_a_new_turn_resets_the_step_count() {
    let mut hand = Hand::new(&built(looping(2)));
    hand.drive([search(), search()]);
    hand.start(Trigger::Resume).unwrap();
    hand.drive([search()]);
    assert_eq!(action_text(&hand.next()), "call model 4", "step numbers never repeat");
    hand.drive([text("Done.")]);
    assert_eq!(hand.session().status().as_str(), "completed");
}

#[test]
fn a_takeover_does_not_reset_the_step_count() {
    let mut hand = Hand::new(&built(looping(2)));
    hand.drive([search()]);
    hand.start(Trigger::Recover).unwrap();
    hand.drive([search()]);
    assert!(failure(&hand).starts_with("step_limit"), "{}", failure(&hand));
}

#[test]
fn stop_when_completes_the_run_without_output() {
    let done = |result: &StepResult| matches!(result, StepResult::Text { content, .. } if content.contains("DONE"));
    let mut hand = Hand::new(&built(looping(9).stop_when(done)));
    hand.drive([search(), more_text("on"), more_text("DONE"), search()]);
    expect![[r#"
        reply 1: 1.0 search({})
        finished 1.0: {}
        closed 1
        reply 2: "on"
        closed 2
        reply 3: "DONE"
        closed 3
        ended completed without output
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn stop_when_sees_calls_after_they_ran() {
    let any_call = |result: &StepResult| matches!(result, StepResult::ToolCalls { .. });
    let mut hand = Hand::new(&built(looping(9).stop_when(any_call)));
    hand.drive([search()]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Completed);
    assert_eq!(hand.session().usage().tool_calls, 1);
}

#[test]
fn the_step_limit_comes_before_stop_when() {
    let mut hand = Hand::new(&built(looping(1).stop_when(|_| true)));
    hand.drive([search()]);
    assert!(failure(&hand).starts_with("step_limit"), "{}", failure(&hand));
}

#[test]
fn corrected_answers_count_as_steps_with_and_without_stop_when() {
    let agents: [AnyAgent; 2] = [
        built(looping(1).output_schema(result_schema())),
        built(looping(1).output_schema(result_schema()).stop_when(|_| false)),
    ];
    for agent in agents {
        for answer in [text("Done."), output(json!({"result": 1}))] {
            let mut hand = Hand::new(&agent);
            hand.drive([answer]);
            assert!(failure(&hand).starts_with("step_limit"), "{}", failure(&hand));
        }
    }
}

fn broken() -> StepResult {
    error_step(ErrorCode::ProviderStreamCut, false)
}

#[test]
fn a_failed_model_call_adds_nothing_and_is_retried_as_the_next_step() {
    let mut hand = Hand::new(&built(builder()));
    hand.drive([broken(), text("Here I am.")]);
    expect![[r#"
        reply 1: error provider_stream_cut
        closed 1
        reply 2: "Here I am."
        closed 2
        ended completed: "Here I am."
    "#]]
    .assert_eq(&hand.story());
    assert_eq!(hand.session().transcript().len(), 2);
    assert_eq!(hand.session().turn_steps(), 2, "the failed call counts as a step");
}

#[test]
fn a_failed_model_call_that_does_not_stop_is_retried_whatever_its_stop_reason() {
    for reason in [StopReason::Error, StopReason::Unknown, StopReason::MaxTokens] {
        let mut hand = Hand::new(&built(builder().output_schema(result_schema())));
        hand.drive([stopped(broken(), reason)]);
        assert_eq!(action_text(&hand.next()), "call model 2", "{reason:?}");
    }
}

#[test]
fn more_failures_in_a_row_than_allowed_fail_the_run() {
    let mut hand = Hand::new(&built(builder()));
    hand.drive([broken(), broken(), broken()]);
    assert_eq!(action_text(&hand.next()), "call model 4");
    hand.drive([broken()]);
    assert_eq!(failure(&hand), "provider_stream_cut: as arranged");
}

#[test]
fn only_failures_in_a_row_count() {
    let mut hand = Hand::new(&built(builder()));
    let script = [broken(), broken(), broken(), more_text("on"), broken(), broken(), broken()];
    hand.drive(script);
    assert_eq!(hand.session().model_failures(), 3);
    assert_eq!(action_text(&hand.next()), "call model 8");
}

#[test]
fn failed_calls_count_against_the_step_limit() {
    let mut hand = Hand::new(&built(looping(2)));
    hand.drive([broken(), broken()]);
    assert!(failure(&hand).starts_with("step_limit"), "{}", failure(&hand));
}

#[test]
fn a_failed_call_that_stops_fails_the_run_with_its_own_error() {
    let mut hand = Hand::new(&built(builder().output_schema(result_schema())));
    hand.drive([error_step(ErrorCode::ProviderUnauthorized, true)]);
    assert_eq!(failure(&hand), "provider_unauthorized: as arranged");
    assert_eq!(hand.session().corrections(), 0);
}

#[test]
fn the_last_step_of_a_turn_is_forced_to_complete() {
    let mut hand = Hand::new(&built(looping(2).output_schema(result_schema())));
    assert_eq!(action_text(&hand.next()), "call model 1");
    hand.drive([search()]);
    assert_eq!(action_text(&hand.next()), "call model 2, forced");

    let mut hand = Hand::new(&built(looping(2)));
    hand.drive([search()]);
    assert_eq!(action_text(&hand.next()), "call model 2", "no completion tool to force");
}
