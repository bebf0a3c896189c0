//! Native structured output: it adds no message, and it is repaired if possible and corrected
//! otherwise.

use expect_test::expect;
use serde_json::json;

use crate::agent::AnyAgent;
use crate::error::ErrorCode;
use crate::testing::{
    Hand, action_text, builder, built, output, result_schema, text, transcript_text,
};

fn agent() -> AnyAgent {
    built(builder().output_schema(result_schema()).native_output())
}

#[test]
fn a_native_output_completes_the_turn_and_adds_no_message() {
    let mut hand = Hand::new(&agent());
    hand.drive([output(json!({"result": "done"}))]);
    expect![[r#"
        reply 1: output {"result":"done"}
        closed 1
        ended completed: {"result":"done"}
    "#]]
    .assert_eq(&hand.story());
    assert_eq!(transcript_text(hand.session().transcript()), "user: go\n");
}

#[test]
fn a_native_output_is_repaired_if_possible() {
    let mut hand = Hand::new(&agent());
    hand.drive([output(json!("```json\n{\"result\": \"done\"}\n```"))]);
    assert_eq!(hand.session().last_run().unwrap().output, Some(json!({"result": "done"}).into()));
}

#[test]
fn a_native_output_that_does_not_fit_is_corrected_without_naming_a_tool() {
    let mut hand = Hand::new(&agent());
    hand.drive([output(json!({"result": 1})), output(json!({"result": "done"}))]);
    expect![[r#"
        reply 1: output {"result":1}
        correction 1: Answer again with one JSON value that fits the given schema, and nothing else.
        closed 1
        reply 2: output {"result":"done"}
        closed 2
        ended completed: {"result":"done"}
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn text_from_an_agent_with_native_output_is_corrected() {
    let mut hand = Hand::new(&agent());
    hand.drive([text("Done.")]);
    assert_eq!(hand.session().corrections(), 1);
    assert_eq!(action_text(&hand.next()), "call model 2, forced");
}

#[test]
fn a_native_output_that_never_fits_is_output_invalid() {
    let mut hand = Hand::new(&agent());
    let bad = || output(json!({"result": 1}));
    hand.drive([bad(), bad(), bad()]);
    let error = hand.session().last_run().unwrap().error.clone().unwrap();
    assert!(error.is(ErrorCode::OutputInvalid));
    let outline = ": at /result: an integer does not satisfy `type`: \"string\"";
    assert!(error.message.ends_with(outline), "{error}");
    assert_eq!(error.detail.as_deref(), Some("at /result: 1 is not of type \"string\""));
}

#[test]
fn a_native_output_is_taken_from_an_agent_that_completes_by_finish_too() {
    let mut hand = Hand::new(&built(builder().output_schema(result_schema())));
    hand.drive([output(json!({"result": "done"}))]);
    assert_eq!(hand.session().status().as_str(), "completed");
}
