//! Interrupt and abort requests, handled at each point of a step and by each run that takes over.

use expect_test::expect;
use serde_json::json;

use crate::agent::AnyAgent;
use crate::event::{Event, Trigger};
use crate::session::RunStatus;
use crate::store::SessionStatus;
use crate::testing::{
    Hand, action_text, builder, built, calls, echo, error_step, finish, more_text, result_schema,
    text,
};

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")).tool(echo("submit").finish_with()))
}

const INTERRUPTED: &str = r#"end interrupted: Some("stop")"#;
const ABORTED: &str = r#"end aborted: Some("stop")"#;

#[test]
fn an_interrupt_before_the_first_model_call_ends_the_run() {
    let mut hand = Hand::new(&agent());
    hand.interrupt();
    assert_eq!(action_text(&hand.next()), INTERRUPTED);
}

#[test]
fn an_interrupt_in_a_step_takes_effect_when_the_step_is_closed() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({})), ("submit", json!({}))]));
    hand.interrupt();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 1");
    hand.result("1.0", json!({}));
    assert_eq!(action_text(&hand.next()), "run finish tool 1.1 try 1");
    hand.result("1.1", json!(null));
    assert_eq!(action_text(&hand.next()), INTERRUPTED);
}

#[test]
fn an_interrupt_does_not_undo_an_answer() {
    let mut hand = Hand::new(&agent());
    hand.interrupt();
    hand.reply(text("Done."));
    assert_eq!(action_text(&hand.next()), r#"end completed: "Done.""#);
}

#[test]
fn an_interrupt_takes_effect_before_a_retry_or_a_corrected_reply() {
    let mut hand = Hand::new(&agent());
    hand.reply(error_step(crate::error::ErrorCode::ProviderStreamCut, false));
    hand.interrupt();
    assert_eq!(action_text(&hand.next()), INTERRUPTED);

    let mut hand = Hand::new(&built(builder().output_schema(result_schema())));
    hand.reply(text("Done."));
    hand.interrupt();
    assert_eq!(action_text(&hand.next()), INTERRUPTED);
}

#[test]
fn an_interrupted_run_is_resumed_where_it_was() {
    let mut hand = Hand::new(&agent());
    hand.drive([more_text("On it.")]);
    hand.interrupt();
    hand.drive([]);
    assert_eq!(hand.session().status(), SessionStatus::Interrupted);
    hand.start(Trigger::Resume).unwrap();
    assert_eq!(action_text(&hand.next()), "call model 2");
    hand.drive([text("Done.")]);
    assert_eq!(hand.session().status(), SessionStatus::Completed);
    assert_eq!(hand.session().turn(), 1, "a resume continues the same turn");
}

#[test]
fn an_abort_between_steps_ends_the_run_at_once() {
    let mut hand = Hand::new(&agent());
    hand.abort();
    assert_eq!(action_text(&hand.next()), ABORTED);
}

#[test]
fn an_abort_in_a_step_answers_every_open_call_first() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([
        ("search", json!({"x": 0})),
        ("search", json!({"x": 1})),
        ("submit", json!({})),
    ]));
    hand.result("1.1", json!({"x": 1}));
    hand.abort();
    hand.drive([]);
    expect![[r#"
        reply 1: 1.0 search({"x":0}), 1.1 search({"x":1}), 1.2 submit({})
        finished 1.1: {"x":1}
        abort requested
        finished 1.0: error tool_outcome_unknown: the run was aborted before the call had a result; whether it acted is not known
        finished 1.2: error tool_outcome_unknown: the run was aborted before the call had a result; whether it acted is not known
        closed 1
        ended aborted: Some("stop")
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn an_abort_wins_over_an_answer_and_over_an_interrupt() {
    let mut hand = Hand::new(&agent());
    hand.interrupt();
    hand.abort();
    hand.reply(text("Done."));
    assert_eq!(action_text(&hand.next()), ABORTED);
}

#[test]
fn an_abort_prevents_a_correction() {
    let mut hand = Hand::new(&built(builder().output_schema(result_schema())));
    hand.abort();
    hand.reply(finish(json!({"result": 1})));
    hand.drive([]);
    assert_eq!(hand.session().last_run().unwrap().status, RunStatus::Aborted);
    assert_eq!(hand.session().corrections(), 0, "{}", hand.story());
}

#[test]
fn a_session_without_a_live_run_is_aborted_by_a_new_run() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({}))]));
    hand.start(Trigger::Abort).unwrap();
    hand.abort();
    hand.drive([]);
    let statuses: Vec<_> = hand.session().runs().map(|run| run.status).collect();
    assert_eq!(statuses, [RunStatus::Superseded, RunStatus::Aborted]);
    assert_eq!(hand.session().status(), SessionStatus::Aborted);
    assert!(hand.session().open_step().is_none());
}

#[test]
fn a_takeover_honours_an_interrupt_and_an_explicit_resume_continues() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({}))]));
    hand.interrupt();
    hand.start(Trigger::Recover).unwrap();
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 3");
    hand.result("1.0", json!({}));
    assert_eq!(action_text(&hand.next()), INTERRUPTED);
    hand.drive([]);
    hand.start(Trigger::Resume).unwrap();
    assert_eq!(action_text(&hand.next()), "call model 2");
}

#[test]
fn a_takeover_honours_an_abort_at_once() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({}))]));
    hand.abort();
    hand.start(Trigger::Recover).unwrap();
    hand.drive([]);
    expect![[r#"
        reply 1: 1.0 search({})
        abort requested
        r2 started: Recover
        finished 1.0: error tool_outcome_unknown: the run was aborted before the call had a result; whether it acted is not known
        closed 1
        ended aborted: Some("stop")
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn a_caller_clears_the_interrupt_that_it_saw_and_no_other() {
    let mut hand = Hand::new(&agent());
    hand.interrupt();
    let seen = hand.session().interrupt_request().unwrap().id.clone();
    let mut later = hand.clone();
    hand.start_clearing(Trigger::Recover, &seen).unwrap();
    assert_eq!(action_text(&hand.next()), "call model 1");
    assert_eq!(hand.session().cleared_interrupt(), Some(&seen));

    later.interrupt();
    later.start_clearing(Trigger::Recover, &seen).unwrap();
    assert_eq!(action_text(&later.next()), INTERRUPTED);
}

#[test]
fn nothing_clears_an_abort() {
    let mut hand = Hand::new(&agent());
    hand.drive([more_text("On it.")]);
    let checkpoint = hand.session().checkpoints()[0].version;
    hand.abort();
    let abort = hand.session().abort_request().unwrap().id.clone();
    hand.start_clearing(Trigger::Recover, &abort).unwrap();
    assert_eq!(action_text(&hand.next()), ABORTED);
    hand.go_back(checkpoint).unwrap();
    assert_eq!(action_text(&hand.next()), ABORTED);
}

#[test]
fn a_fork_does_not_inherit_requests() {
    let mut hand = Hand::new(&agent());
    hand.interrupt();
    hand.abort();
    hand.start(Trigger::Recover).unwrap();
    hand.reply(more_text("On it."));
    hand.put_as(None, fork_at(hand.session().checkpoints()[0].version)).unwrap();
    assert!(hand.session().interrupt_request().is_none());
    assert!(hand.session().abort_request().is_none());
}

fn fork_at(at: u64) -> Event {
    Event::Forked { from: "original".into(), at, tags: std::collections::BTreeMap::new() }
}

#[test]
fn an_aborted_session_takes_a_new_turn() {
    let mut hand = Hand::new(&agent());
    hand.abort();
    hand.drive([]);
    hand.start(Trigger::Continue).unwrap();
    hand.say("again");
    hand.drive([text("Hello.")]);
    assert_eq!(hand.session().status(), SessionStatus::Completed);
}
