//! Completion by `__finish__`: other calls of the same reply, invalid outputs, corrections.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::agent::AnyAgent;
use crate::error::ErrorCode;
use crate::event::{ToolOutcome, Trigger};
use crate::message::UserMessage;
use crate::session::RunStatus;
use crate::step::{Action, StepResult, StopReason, is_correction};
use crate::testing::{
    Hand, action_text, builder, built, calls, echo, finish, more_text, raw_call, result_schema,
    stopped, text, transcript_text,
};
use crate::tool::Tool;

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")).output_schema(result_schema()))
}

fn check(script: Vec<StepResult>, story: &Expect) -> Hand {
    let mut hand = Hand::new(&agent());
    hand.drive(script);
    story.assert_eq(&hand.story());
    hand
}

fn good() -> StepResult {
    finish(json!({"result": "done"}))
}

fn failure(hand: &Hand) -> String {
    let error = hand.session().last_run().unwrap().error.clone().unwrap();
    format!("{}: {}", error.code, error.in_full())
}

#[test]
fn calls_in_the_same_reply_as_finish_are_answered_and_not_run() {
    let hand = check(
        vec![calls([
            ("search", json!({"x": 1})),
            ("__finish__", json!({"result": "done"})),
            ("no_such", json!({})),
            ("subagent__child", json!({})),
            ("companion__spawnAgent", json!({})),
            ("__finish__", json!({"result": "twice"})),
        ])],
        &expect![[r#"
            reply 1: 1.0 search({"x":1}), 1.1 __finish__({"result":"done"}), 1.2 no_such({}), 1.3 companion__spawnAgent({}), 1.4 __finish__({"result":"twice"}), 1.5 subagent__child({})
            finished 1.0: error tool_not_run: not run: the turn was finished in the same reply
            finished 1.1: acknowledged; output {"result":"done"}
            finished 1.2: error tool_not_run: not run: the turn was finished in the same reply
            finished 1.3: error tool_not_run: not run: the turn was finished in the same reply
            finished 1.4: error tool_not_run: not run: the turn was finished in the same reply
            finished 1.5: error tool_not_run: not run: the turn was finished in the same reply
            closed 1
            ended completed: {"result":"done"}
        "#]],
    );
    assert_eq!(hand.session().usage().tool_calls, 0, "nothing ran");
}

#[test]
fn calls_in_the_same_reply_as_finish_never_run_even_if_the_log_ends_between_two_answers() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([
        ("search", json!({"x": 1})),
        ("__finish__", json!({"result": "done"})),
        ("search", json!({"x": 2})),
    ])]);
    let first = hand.log.iter().position(|(_, event)| event.name() == "tool_finished").unwrap();
    for answered in 1..3 {
        let mut cut = Hand::refolded(&agent(), &hand.log[..first + answered]);
        cut.start(Trigger::Recover).unwrap();
        cut.drive([]);
        assert_eq!(cut.session().usage().tool_calls, 0, "a tool ran after {answered} answers");
        let run = cut.session().last_run().unwrap();
        assert_eq!(run.output.as_ref().unwrap().text(), r#"{"result":"done"}"#);
    }
}

#[test]
fn error_messages_about_large_arguments_are_bounded() {
    let large = "x".repeat(100_000);
    let tool = Tool::dynamic(
        "narrow",
        "d",
        json!({"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"},
            "d": {"type": "integer"}, "e": {"type": "integer"}, "f": {"type": "integer"},
        }}),
        |input, _| async { Ok(input) },
    );
    let mut hand = Hand::new(&built(builder().tool(tool)));
    let all = json!({"a": large, "b": large, "c": large, "d": large, "e": large, "f": large});
    hand.drive([calls([("narrow", all), (&*large, json!({}))])]);
    for call in &hand.session().closed_step().unwrap().calls {
        let ToolOutcome::Error(error) = &call.finish.as_ref().unwrap().outcome else { panic!() };
        assert!(error.message.len() < 1_200, "{} bytes", error.message.len());
        assert!(
            error.message.contains("is not of type \"integer\"")
                || error.message.contains("there is no tool"),
            "the message does not name the problem: {}",
            error.message
        );
    }
}

#[test]
fn an_output_that_does_not_fit_is_answered_and_corrected() {
    let hand = check(
        vec![finish(json!({"result": 1})), good()],
        &expect![[r#"
        reply 1: 1.0 __finish__({"result":1})
        finished 1.0: error output_invalid: the output was not accepted: at /result: 1 is not of type "string"
        correction 1: The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments.
        closed 1
        reply 2: 2.0 __finish__({"result":"done"})
        finished 2.0: acknowledged; output {"result":"done"}
        closed 2
        ended completed: {"result":"done"}
    "#]],
    );
    expect![[r#"
        user: go
        assistant: 1.0 __finish__({"result":1})
        tool: 1.0 __finish__ = {"error":"the output was not accepted: at /result: 1 is not of type \"string\""}
        user: The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments.
        assistant: 2.0 __finish__({"result":"done"})
        tool: 2.0 __finish__ = {"acknowledged":true}
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
}

#[test]
fn an_output_that_never_fits_fails_after_the_retries() {
    let bad = || finish(json!({}));
    let mut hand = Hand::new(&agent());
    hand.drive([bad(), bad()]);
    assert_eq!(hand.session().corrections(), 2);
    hand.drive([bad()]);
    assert_eq!(hand.session().last_step(), 3);
    assert_eq!(
        failure(&hand),
        "output_invalid: the model produced no output that matches the output type: the output \
         was not accepted: \"result\" is a required property"
    );
}

#[test]
fn error_messages_about_an_invalid_output_are_bounded() {
    let agent = built(builder().output_schema(result_schema()).completion_retries(0));
    let mut hand = Hand::new(&agent);
    hand.drive([finish(json!({"result": ["x".repeat(10_000)]}))]);
    assert!(failure(&hand).len() < 700, "{}", failure(&hand));
}

#[test]
fn the_agent_sets_the_number_of_retries() {
    let agent = built(builder().output_schema(result_schema()).completion_retries(0));
    let mut hand = Hand::new(&agent);
    hand.drive([text("Done!")]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Failed);
    assert_eq!(hand.session().corrections(), 0);
}

#[test]
fn text_that_ends_the_turn_is_corrected_if_an_output_is_required() {
    let hand = check(
        vec![text("It is done."), good()],
        &expect![[r#"
        reply 1: "It is done."
        correction 1: The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments.
        closed 1
        reply 2: 2.0 __finish__({"result":"done"})
        finished 2.0: acknowledged; output {"result":"done"}
        closed 2
        ended completed: {"result":"done"}
    "#]],
    );
    assert_eq!(hand.session().corrections(), 1);
}

#[test]
fn text_that_does_not_end_the_turn_is_not_corrected() {
    let mut hand = Hand::new(&agent());
    hand.drive([more_text("Let me see.")]);
    assert_eq!(hand.session().corrections(), 0);
    assert_eq!(action_text(&hand.next()), "call model 2");
}

#[test]
fn after_a_correction_the_completion_is_forced_once() {
    let mut hand = Hand::new(&agent());
    hand.drive([text("Done.")]);
    assert_eq!(action_text(&hand.next()), "call model 2, forced");
    hand.drive([calls([("search", json!({}))])]);
    assert_eq!(action_text(&hand.next()), "call model 3");
}

#[test]
fn corrections_name_the_finish_tools_and_are_hidden_from_users() {
    let tools = builder().tool(echo("a").finish_with()).tool(echo("b").finish_with());
    let mut hand = Hand::new(&built(tools.output_schema(json!({"type": "object"}))));
    hand.put(crate::event::Event::from(reply(1, text("Done.")))).unwrap();
    let Action::Correct(message) = hand.next() else { panic!("{:?}", hand.next()) };
    assert!(message.content.contains("Call one of `a`, `b` directly now"), "{message:?}");
    assert!(message.hidden);
}

#[test]
fn corrections_are_distinguished_from_other_user_messages() {
    for agent in [
        builder().output_schema(result_schema()),
        builder().output_schema(result_schema()).native_output(),
    ] {
        let mut hand = Hand::new(&built(agent));
        hand.put(crate::event::Event::from(reply(1, text("Done.")))).unwrap();
        let Action::Correct(message) = hand.next() else { panic!("{:?}", hand.next()) };
        assert!(is_correction(&message), "{message:?}");
        assert!(!is_correction(&UserMessage::new(message.content)));
    }
    let hint = UserMessage::hidden("The user is in Oslo.");
    assert!(!is_correction(&hint));
}

fn reply(step: u32, result: StepResult) -> crate::event::ModelReply {
    let response = crate::llm::LlmResponse::new(result, crate::usage::Usage::default());
    crate::event::ModelReply::from_response(step, response, 0)
}

#[test]
fn text_that_was_cut_off_is_corrected_with_a_hint() {
    let cut = stopped(more_text("Once upon a ti"), StopReason::MaxTokens);
    check(
        vec![cut, good()],
        &expect![[r#"
        reply 1: "Once upon a ti"
        correction 1: The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments. Your reply was cut off at the token limit: keep it short.
        closed 1
        reply 2: 2.0 __finish__({"result":"done"})
        finished 2.0: acknowledged; output {"result":"done"}
        closed 2
        ended completed: {"result":"done"}
    "#]],
    );
}

#[test]
fn when_the_retries_run_out_on_cut_off_replies_the_code_is_max_tokens() {
    let cut_text = || stopped(more_text("Once"), StopReason::MaxTokens);
    let cut_finish = || stopped(raw_call("__finish__", r#"{"resu"#), StopReason::MaxTokens);
    for cut in [cut_text, cut_finish] {
        let mut hand = Hand::new(&agent());
        hand.drive([cut(), cut(), cut()]);
        assert_eq!(failure(&hand), "max_tokens: the reply was cut off at the token limit");
        assert_eq!(hand.session().corrections(), 2);
    }
}

#[test]
fn cut_off_text_without_an_output_type_fails_at_once() {
    let mut hand = Hand::new(&built(builder()));
    hand.drive([stopped(text("Once"), StopReason::MaxTokens)]);
    assert_eq!(failure(&hand), "max_tokens: the reply was cut off at the token limit");
}

#[test]
fn fatal_stop_reasons_never_retry() {
    let table = [
        (StopReason::ContentFilter, ErrorCode::ContentFilter),
        (StopReason::Refusal, ErrorCode::Refusal),
        (StopReason::Error, ErrorCode::ModelError),
        (StopReason::Unknown, ErrorCode::StopReasonUnknown),
    ];
    for (reason, code) in table {
        for result in [text("x"), more_text("x"), good(), calls([("search", json!({}))])] {
            let mut hand = Hand::new(&agent());
            hand.drive([stopped(result, reason)]);
            let run = hand.session().last_run().unwrap();
            assert!(run.error.clone().unwrap().is(code), "{reason:?}: {run:?}");
            assert_eq!(hand.session().corrections(), 0);
            assert_eq!(hand.session().usage().tool_calls, 0, "nothing ran");
        }
    }
}

#[test]
fn an_unknown_stop_reason_is_named_in_the_error() {
    let mut hand = Hand::new(&built(builder()));
    hand.drive([stopped(text("x"), StopReason::Unknown)]);
    assert!(failure(&hand).ends_with("`odd`"), "{}", failure(&hand));
}

#[test]
fn a_refused_output_does_not_prevent_the_other_calls_from_running() {
    check(
        vec![calls([("__finish__", json!({})), ("search", json!({"x": 1}))]), good()],
        &expect![[r#"
            reply 1: 1.0 __finish__({}), 1.1 search({"x":1})
            finished 1.0: error output_invalid: the output was not accepted: "result" is a required property
            finished 1.1: {"x":1}
            correction 1: The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments.
            closed 1
            reply 2: 2.0 __finish__({"result":"done"})
            finished 2.0: acknowledged; output {"result":"done"}
            closed 2
            ended completed: {"result":"done"}
        "#]],
    );
}

#[test]
fn with_a_finish_tool_but_no_output_type_text_is_an_answer() {
    let mut hand = Hand::new(&built(builder().tool(echo("submit").finish_with())));
    hand.drive([text("Nothing to submit.")]);
    let run = hand.session().last_run().unwrap();
    assert_eq!(run.status, RunStatus::Completed, "no output is required: {run:?}");
    assert_eq!(run.output, Some(json!("Nothing to submit.").into()));
}

#[test]
fn finish_is_an_unknown_tool_to_an_agent_without_it() {
    let mut hand = Hand::new(&built(builder().tool(echo("search"))));
    hand.drive([good(), text("Sorry.")]);
    expect![[r#"
        reply 1: 1.0 __finish__({"result":"done"})
        finished 1.0: error tool_unknown: there is no tool `__finish__`; the tools are: search
        closed 1
        reply 2: "Sorry."
        closed 2
        ended completed: "Sorry."
    "#]]
    .assert_eq(&hand.story());
}
