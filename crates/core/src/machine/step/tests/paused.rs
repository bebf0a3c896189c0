//! Replies that their provider paused: the next model call continues them.

use expect_test::expect;
use serde_json::json;

use crate::budget::Budget;
use crate::error::ErrorCode;
use crate::event::Trigger;
use crate::json::Json;
use crate::llm::{LlmResponse, ReplyBuilder};
use crate::message::{Message, ReplyPart};
use crate::session::{RunStatus, Session};
use crate::step::{StepResult, StopReason};
use crate::testing::{
    Hand, action_text, builder, built, calls, echo, error_step, finish, more_text, output,
    result_schema, stopped, text, transcript_text,
};
use crate::usage::Usage;

/// A part that only the provider reads, written as no JSON writer would write it.
const SEARCH: &str = r#"{ "type" : "server_tool_use", "query" : "caf\u00e9", "n" : 1.50 }"#;

fn paused(content: &str) -> StepResult {
    stopped(more_text(content), StopReason::Pause)
}

fn search() -> StepResult {
    calls([("search", json!({}))])
}

fn broken() -> StepResult {
    error_step(ErrorCode::ProviderStreamCut, false)
}

fn failure(hand: &Hand) -> String {
    hand.session().last_run().unwrap().error.clone().unwrap().to_string()
}

/// Returns the parts of the last message, which must be a reply.
fn parts(session: &Session) -> String {
    let Message::Assistant(reply) = &**session.transcript().last().unwrap() else { panic!() };
    let part = |part: ReplyPart<'_>| match part {
        ReplyPart::Text { text, data: None } => format!("text {text:?}\n"),
        ReplyPart::Opaque { data } => format!("opaque {}\n", data.text()),
        other => format!("{other:?}\n"),
    };
    reply.parts().map(part).collect()
}

#[test]
fn a_paused_reply_is_sent_back_unchanged_and_continued() {
    let mut reply = ReplyBuilder::default();
    reply.text("Searching.", None);
    reply.opaque(Json::parse(SEARCH).unwrap());
    let layout = reply.layout("api", "model-1");
    let result = reply.into_result(Some(StopReason::Pause), false);
    let mut hand = Hand::new(&built(builder()));
    hand.respond(LlmResponse { layout, ..LlmResponse::new(result, Usage::default()) });
    assert_eq!(action_text(&hand.next()), "call model 2");
    assert_eq!(parts(hand.session()), format!("text \"Searching.\"\nopaque {SEARCH}\n"));
    hand.drive([text("Found.")]);
    expect![[r#"
        reply 1: "Searching."
        closed 1
        reply 2: "Found."
        closed 2
        ended completed: "Found."
    "#]]
    .assert_eq(&hand.story());
    assert_eq!(hand.session().turn_steps(), 2, "the paused reply counts as a step");
}

#[test]
fn a_paused_reply_without_text_is_kept() {
    let mut reply = ReplyBuilder::default();
    reply.opaque(Json::parse(SEARCH).unwrap());
    let layout = reply.layout("api", "model-1");
    let result = reply.into_result(Some(StopReason::Pause), false);
    let mut hand = Hand::new(&built(builder()));
    hand.respond(LlmResponse { layout, ..LlmResponse::new(result, Usage::default()) });
    assert_eq!(action_text(&hand.next()), "call model 2");
    assert_eq!(parts(hand.session()), format!("opaque {SEARCH}\n"));
}

#[test]
fn the_pause_counts_even_if_the_adapter_reports_the_end_of_the_turn() {
    let mut hand = Hand::new(&built(builder()));
    hand.reply(stopped(text("Searching."), StopReason::Pause));
    assert_eq!(action_text(&hand.next()), "call model 2");
    assert_eq!(hand.session().transcript().len(), 2);
}

#[test]
fn calls_of_a_paused_reply_run_before_it_is_continued() {
    let mut hand = Hand::new(&built(builder().tool(echo("search"))));
    hand.drive([stopped(search(), StopReason::Pause), text("Found.")]);
    expect![[r#"
        reply 1: 1.0 search({})
        finished 1.0: {}
        closed 1
        reply 2: "Found."
        closed 2
        ended completed: "Found."
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn the_output_of_a_paused_reply_completes_the_turn() {
    let mut hand = Hand::new(&built(builder().output_schema(result_schema())));
    hand.drive([stopped(finish(json!({"result": "done"})), StopReason::Pause)]);
    let run = hand.session().last_run().unwrap();
    assert_eq!(run.output.as_ref().unwrap().text(), r#"{"result":"done"}"#);
}

#[test]
fn a_paused_reply_is_not_corrected_if_an_output_is_required() {
    for (agent, answer) in [
        (builder().output_schema(result_schema()), finish(json!({"result": "done"}))),
        (
            builder().output_schema(result_schema()).native_output(),
            output(json!({"result": "done"})),
        ),
    ] {
        let mut hand = Hand::new(&built(agent));
        hand.reply(paused("Searching."));
        assert_eq!(action_text(&hand.next()), "call model 2");
        hand.drive([answer]);
        assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Completed);
        assert_eq!(hand.session().corrections(), 0);
    }
}

#[test]
fn paused_replies_count_against_the_step_limit_and_are_kept() {
    let mut hand = Hand::new(&built(builder().max_steps(2)));
    hand.drive([paused("One."), paused("Two."), text("never")]);
    assert_eq!(failure(&hand), "step_limit: the turn took 2 steps, which is the limit");
    expect![[r#"
        user: go
        assistant: "One."
        assistant: "Two."
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
    hand.start(Trigger::Resume).unwrap();
    hand.drive([text("Three.")]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Completed);
}

#[test]
fn the_last_step_after_a_pause_is_forced_to_complete() {
    let mut hand = Hand::new(&built(builder().max_steps(2).output_schema(result_schema())));
    hand.reply(paused("Searching."));
    assert_eq!(action_text(&hand.next()), "call model 2, forced");
}

#[test]
fn a_paused_reply_is_not_continued_beyond_the_budget() {
    let mut hand = Hand::new(&built(builder().budget(Budget::new().steps(1))));
    hand.drive([paused("Searching."), text("never")]);
    assert!(failure(&hand).starts_with("budget_exceeded"), "{}", failure(&hand));
    hand.start_with(Trigger::Resume, Some(Budget::new().steps(2))).unwrap();
    hand.drive([text("Found.")]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Completed);
}

#[test]
fn stop_when_may_end_the_turn_with_a_paused_reply() {
    let mut hand = Hand::new(&built(builder().stop_when(|_| true)));
    hand.drive([paused("Searching."), text("never")]);
    let run = hand.session().last_run().unwrap();
    assert_eq!((run.status, &run.output), (RunStatus::Completed, &None));
    assert_eq!(hand.session().transcript().len(), 2, "the reply is kept");
}

#[test]
fn an_interrupt_and_a_takeover_leave_a_paused_reply_as_it_is() {
    let agent = built(builder());
    let mut hand = Hand::new(&agent);
    hand.interrupt();
    hand.reply(paused("Searching.")).drive([]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Interrupted);
    hand.start(Trigger::Resume).unwrap();
    assert_eq!(action_text(&hand.next()), "call model 2");
    let mut other = Hand::refolded(&agent, &hand.log);
    other.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&other.next()), "call model 2");
    other.drive([text("Found.")]);
    expect![[r#"
        user: go
        assistant: "Searching."
        assistant: "Found."
    "#]]
    .assert_eq(&transcript_text(other.session().transcript()));
}

#[test]
fn messages_wait_until_a_paused_reply_is_continued() {
    let mut hand = Hand::new(&built(builder()));
    hand.queue("Hurry!");
    hand.reply(paused("Searching."));
    assert_eq!(action_text(&hand.next()), "call model 2");
    // A failed call has not continued the reply.
    hand.reply(broken());
    assert_eq!(action_text(&hand.next()), "call model 3");
    hand.drive([paused("Still searching."), text("Found."), text("As fast as I can.")]);
    expect![[r#"
        queued "Hurry!"
        reply 1: "Searching."
        closed 1
        reply 2: error provider_stream_cut
        closed 2
        reply 3: "Still searching."
        closed 3
        reply 4: "Found."
        closed 4
        took 1 messages
        reply 5: "As fast as I can."
        closed 5
        ended completed: "As fast as I can."
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn messages_enter_after_the_results_of_a_paused_reply() {
    let mut hand = Hand::new(&built(builder().tool(echo("search"))));
    hand.queue("Hurry!");
    hand.reply(stopped(search(), StopReason::Pause)).drive([text("Found.")]);
    expect![[r#"
        user: go
        assistant: 1.0 search({})
        tool: 1.0 search = {}
        user: Hurry!
        assistant: "Found."
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
}

#[test]
fn messages_wait_for_a_paused_reply_that_a_resume_continues() {
    let mut hand = Hand::new(&built(builder().max_steps(1)));
    hand.queue("Hurry!");
    hand.reply(paused("Searching.")).drive([]);
    assert!(failure(&hand).starts_with("step_limit"), "{}", failure(&hand));
    hand.start(Trigger::Resume).unwrap();
    hand.drive([text("Found."), text("As fast as I can.")]);
    expect![[r#"
        user: go
        assistant: "Searching."
        assistant: "Found."
        user: Hurry!
        assistant: "As fast as I can."
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
}

/// A native output adds no message, so the paused reply stays the last one.
#[test]
fn messages_enter_after_a_native_output_that_continues_a_paused_reply() {
    let agent = builder().output_schema(result_schema()).native_output();
    let mut hand = Hand::new(&built(agent));
    hand.queue("Hurry!");
    let done = || output(json!({"result": "done"}));
    hand.reply(paused("Searching.")).drive([done(), done()]);
    expect![[r#"
        queued "Hurry!"
        reply 1: "Searching."
        closed 1
        reply 2: output {"result":"done"}
        closed 2
        took 1 messages
        reply 3: output {"result":"done"}
        closed 3
        ended completed: {"result":"done"}
    "#]]
    .assert_eq(&hand.story());
}
