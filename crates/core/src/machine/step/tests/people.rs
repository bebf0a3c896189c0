//! Pending calls: suspension, submissions, deadlines, queued messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use expect_test::expect;
use serde_json::json;

use crate::agent::AnyAgent;
use crate::clock::Timestamp;
use crate::error::ErrorCode;
use crate::event::{Answer, Event, RecordedEvent, RunOutcome, SCHEMA, ToolOutcome, Trigger};
use crate::id::SessionId;
use crate::session::{ResolvedCall, RunStatus, Session};
use crate::step::{Action, StepIterator};
use crate::store::SessionStatus;
use crate::stream::ChunkKind;
use crate::testing::{
    Hand, action_text, builder, built, calls, echo, result_schema, text, transcript_text,
};
use crate::tool::{EffectClass, NoInput, Tool, ToolError};

fn agent() -> AnyAgent {
    let ask = Tool::client::<NoInput>("ask", "Asks.").deadline(Duration::from_secs(60));
    let big = echo("big").requires_approval_if(|input: serde_json::Value, _| {
        let x = input["x"].as_i64().ok_or_else(|| ToolError::new("no x"))?;
        assert!(x < 1000, "a bug of the condition");
        Ok(x > 10)
    });
    built(
        builder()
            .tool(ask)
            .tool(echo("guarded").requires_approval().editable())
            .tool(big)
            .tool(echo("search"))
            .tool(echo("submit").finish_with()),
    )
}

/// A test session whose run is suspended on these calls.
fn suspended<const N: usize>(asked: [(&str, serde_json::Value); N]) -> Hand {
    let mut hand = Hand::new(&agent());
    hand.clock(1000);
    hand.drive([calls(asked)]);
    hand
}

#[test]
fn only_the_call_of_a_client_tool_is_shown_as_one() {
    let hand = suspended([("ask", json!({})), ("guarded", json!({"x": 1}))]);
    let events = (1..).zip(hand.log.iter().map(|(_, event)| event));
    let shown = crate::session::event_chunks(hand.session(), events);
    let starts: Vec<_> = shown
        .iter()
        .filter_map(|(_, kind)| match kind {
            ChunkKind::ToolStart { call, client, .. } => Some((call.as_str(), *client)),
            _ => None,
        })
        .collect();
    assert_eq!(starts, [("1.0", true)]);
}

/// Folds the log as a reader does, with all of it appended at that time.
fn read(hand: &Hand, at: Timestamp) -> Session {
    read_at(hand, |_| at)
}

/// Folds the log as a reader does, with each event appended one millisecond after the previous one.
fn read_over_time(hand: &Hand) -> Session {
    read_at(hand, |seq| Timestamp(i64::try_from(seq).unwrap()))
}

fn read_at(hand: &Hand, time: impl Fn(u64) -> Timestamp) -> Session {
    let mut session = Session::new(SessionId::from("s"));
    for (index, (run, event)) in hand.log.iter().enumerate() {
        let (seq, run, event) = (index as u64 + 1, run.clone(), event.clone());
        let at = time(seq);
        session.apply_recorded(&RecordedEvent { seq, at, run, schema: SCHEMA, event }).unwrap();
    }
    session
}

fn approved() -> Answer {
    Answer::Approved { edited: None }
}

fn status(hand: &Hand) -> RunStatus {
    hand.session().last_run().unwrap().status
}

#[test]
fn calls_without_a_gate_run_first_and_the_others_suspend_the_run() {
    let mut hand =
        suspended([("ask", json!({})), ("search", json!({"x": 1})), ("guarded", json!({"x": 2}))]);
    assert_eq!(status(&hand), RunStatus::SuspendedClientTool);
    assert_eq!(hand.session().status(), SessionStatus::Active);
    let summary = hand.session().summary();
    assert_eq!((summary.pending, summary.wake_at.map(|at| at.0)), (2, Some(61_000)));
    hand.start(Trigger::Resume).unwrap_err();
    hand.answer("1.0", Answer::Returned(json!("blue").into())).unwrap();
    hand.answer("1.2", approved()).unwrap();
    assert_eq!(hand.session().summary().pending, 0);
    hand.start(Trigger::Resume).unwrap();
    hand.drive([text("Done.")]);
    expect![[r#"
        reply 1: 1.0 ask({}), 1.1 search({"x":1}), 1.2 guarded({"x":2})
        finished 1.1: {"x":1}
        ended suspended on 1.0 ask Client until 61000, 1.2 guarded Approval { editable: true }
        submitted 1.0: Returned("blue")
        submitted 1.2: Approved { edited: None }
        r2 started: Resume
        finished 1.0: "blue"
        started 1.2, try 1
        finished 1.2: {"x":2}
        closed 1
        reply 2: "Done."
        closed 2
        ended completed: "Done."
    "#]]
    .assert_eq(&hand.story());
    expect![[r#"
        user: go
        assistant: 1.0 ask({}), 1.1 search({"x":1}), 1.2 guarded({"x":2})
        tool: 1.0 ask = "blue"
        tool: 1.1 search = {"x":1}
        tool: 1.2 guarded = {"x":2}
        assistant: "Done."
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
}

#[test]
fn a_partly_answered_step_suspends_again_on_the_rest() {
    let mut hand = suspended([("ask", json!({})), ("guarded", json!({})), ("guarded", json!({}))]);
    hand.answer("1.1", Answer::Denied { reason: Some("too dear".to_owned()) }).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.clock(5000);
    hand.drive([]);
    assert_eq!(status(&hand), RunStatus::SuspendedStepPartial);
    let Some((_, Event::RunEnded { outcome: RunOutcome::Suspended { on } })) = hand.log.last()
    else {
        panic!("{}", hand.story())
    };
    let news: Vec<_> = on.new_calls().map(|pending| pending.call.as_str()).collect();
    assert!(news.is_empty(), "no approval is requested twice");
    assert_eq!(on.deadline().unwrap().0, 61_000, "the deadline counts from the first suspension");
    hand.start(Trigger::Resume).unwrap_err();
}

#[test]
fn a_denied_call_does_not_run_and_the_model_learns_of_it() {
    let mut hand = suspended([("guarded", json!({}))]);
    hand.answer("1.0", Answer::Denied { reason: None }).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.drive([text("Well.")]);
    expect![[r#"
        user: go
        assistant: 1.0 guarded({})
        tool: 1.0 guarded = {"error":"Tool call guarded was not approved by the user"}
        assistant: "Well."
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
}

#[test]
fn a_call_approved_with_other_arguments_runs_with_them() {
    let mut hand = suspended([("guarded", json!({"x": 1}))]);
    hand.answer("1.0", Answer::Approved { edited: Some(json!({"x": 2}).into()) }).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.drive([text("Well.")]);
    let story = transcript_text(hand.session().transcript());
    assert!(story.contains(r#"assistant: 1.0 guarded({"x":1})"#), "{story}");
    assert!(story.contains(r#"tool: 1.0 guarded = {"x":2}"#), "{story}");
}

#[test]
fn a_condition_is_evaluated_per_call_and_its_failure_requires_approval() {
    for (input, waits) in [
        (json!({"x": 1}), false),
        (json!({"x": 11}), true),
        (json!({}), true),
        (json!({"x": 1000}), true),
    ] {
        let hand = suspended([("big", input.clone())]);
        assert_eq!(status(&hand).is_suspended(), waits, "{input}");
    }
}

#[test]
fn a_call_that_is_not_answered_in_time_fails() {
    let mut hand = suspended([("ask", json!({}))]);
    hand.clock(61_000);
    hand.start(Trigger::Resume).unwrap_err();
    hand.clock(61_001);
    hand.start(Trigger::Resume).unwrap();
    hand.answer("1.0", Answer::Returned(json!(1).into())).unwrap();
    hand.drive([text("Too late?")]);
    assert_eq!(
        hand.session().settled_call(&"1.0".into()),
        Some(&ResolvedCall::Answered("q6".into())),
        "the log decides, not what could have been found"
    );
    let mut hand = suspended([("ask", json!({}))]);
    hand.clock(61_001);
    hand.start(Trigger::Resume).unwrap();
    hand.drive([text("Too late.")]);
    assert_eq!(hand.session().settled_call(&"1.0".into()), Some(&ResolvedCall::Expired));
    expect![[r#"
        reply 1: 1.0 ask({})
        ended suspended on 1.0 ask Client until 61000
        r2 started: Resume
        finished 1.0: error tool_unanswered: the result of the call was not submitted in time
        closed 1
        reply 2: "Too late."
        closed 2
        ended completed: "Too late."
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn an_expired_call_fails_and_another_stays_pending() {
    let mut hand = suspended([("ask", json!({})), ("guarded", json!({}))]);
    hand.clock(61_001);
    hand.start(Trigger::Resume).unwrap();
    hand.drive([]);
    expect![[r#"
        reply 1: 1.0 ask({}), 1.1 guarded({})
        ended suspended on 1.0 ask Client until 61000, 1.1 guarded Approval { editable: true }
        r2 started: Resume
        finished 1.0: error tool_unanswered: the result of the call was not submitted in time
        ended suspended on 1.1 guarded Approval { editable: true }
    "#]]
    .assert_eq(&hand.story());
    assert_eq!(status(&hand), RunStatus::SuspendedStepPartial);
}

#[test]
fn a_finish_tool_waits_for_pending_calls() {
    let mut hand = suspended([("submit", json!({"x": 1})), ("ask", json!({}))]);
    assert!(status(&hand).is_suspended(), "{}", hand.story());
    hand.answer("1.1", Answer::Error("no answer".to_owned())).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.decide();
    assert_eq!(action_text(&hand.next()), "run finish tool 1.0 try 1");
}

#[test]
fn finishing_in_the_same_reply_requests_nothing() {
    let ask = Tool::client::<NoInput>("ask", "Asks.");
    let agent = built(builder().tool(ask).output_schema(result_schema()));
    let mut hand = Hand::new(&agent);
    hand.drive([calls([("ask", json!({})), ("__finish__", json!({"result": "r"}))])]);
    assert_eq!(status(&hand), RunStatus::Completed, "{}", hand.story());
}

#[test]
fn an_answer_of_the_wrong_kind_or_to_no_pending_call_is_not_legal() {
    let mut hand = suspended([("ask", json!({})), ("guarded", json!({}))]);
    hand.answer("1.0", approved()).unwrap_err();
    hand.answer("1.1", Answer::Returned(json!(1).into())).unwrap_err();
    hand.answer("1.2", approved()).unwrap_err();
    hand.answer("1.1", approved()).unwrap();
    hand.answer("1.1", approved()).unwrap_err();
}

#[test]
fn an_answer_on_record_is_the_result_although_runs_have_crashed_since() {
    let mut hand = suspended([("ask", json!({}))]);
    hand.answer("1.0", Answer::Returned(json!("blue").into())).unwrap();
    hand.start(Trigger::Resume).unwrap();
    for _ in 0..5 {
        hand.start(Trigger::Recover).unwrap();
    }
    hand.decide();
    let step = hand.session().open_step().or(hand.session().closed_step()).unwrap();
    let finish = step.calls[0].finish.as_ref().unwrap();
    assert_eq!(finish.outcome, ToolOutcome::Success(json!("blue").into()));
}

#[test]
fn an_aborted_session_drops_its_pending_calls() {
    let mut hand = suspended([("guarded", json!({}))]);
    hand.start(Trigger::Abort).unwrap();
    hand.abort();
    hand.drive([]);
    assert_eq!(status(&hand), RunStatus::Aborted);
    assert_eq!(hand.session().settled_call(&"1.0".into()), Some(&ResolvedCall::Dropped));
    let result = transcript_text(hand.session().transcript());
    assert!(result.contains("while the call was pending"), "{result}");
}

/// The start of an approved call is recorded only if the call is at-most-once.
#[test]
fn an_abort_does_not_claim_that_an_approved_call_has_not_run() {
    let (once, again) = (EffectClass::AtMostOnce, EffectClass::Idempotent);
    for (class, before, after, expected) in [
        (once, None, Some(Trigger::Resume), ErrorCode::ToolNotRun),
        (again, None, Some(Trigger::Resume), ErrorCode::ToolOutcomeUnknown),
        (again, None, Some(Trigger::Abort), ErrorCode::ToolNotRun),
        // The call is approved while another answer has resumed the session.
        (again, Some(Trigger::Resume), None, ErrorCode::ToolOutcomeUnknown),
    ] {
        let agent = built(builder().tool(echo("guarded").requires_approval().effect(class)));
        let mut hand = Hand::new(&agent);
        hand.drive([calls([("guarded", json!({"x": 1})), ("guarded", json!({"x": 2}))])]);
        if let Some(trigger) = before {
            hand.answer("1.1", approved()).unwrap();
            hand.start(trigger).unwrap();
        }
        hand.answer("1.0", approved()).unwrap();
        after.into_iter().for_each(|trigger| hand.start(trigger).unwrap());
        hand.abort();
        let events = StepIterator::new(agent, read_over_time(&hand)).decide().unwrap();
        let finish = events.iter().find_map(|event| match event {
            Event::ToolFinished(finish) if finish.call.index() == Some(0) => Some(finish),
            _ => None,
        });
        let finish = finish.unwrap();
        let ToolOutcome::Error(error) = &finish.outcome else { panic!("{finish:?}") };
        assert!(error.is(expected), "{class:?}: {error:?}");
    }
}

/// The state may have changed since the step started.
#[test]
fn an_approval_condition_is_not_evaluated_again_after_a_conflict() {
    let evaluations = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&evaluations);
    let tool = echo("guarded").requires_approval_if(move |_: serde_json::Value, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    });
    let mut hand = Hand::new(&built(builder().tool(tool)));
    hand.decide();
    hand.reply(calls([("guarded", json!({}))]));
    hand.iterator.decide().unwrap();
    let before = evaluations.load(Ordering::Relaxed);
    hand.iterator.session_to_roll_back();
    hand.iterator.decide().unwrap();
    assert!(matches!(hand.next(), Action::End(_)));
    assert_eq!(evaluations.load(Ordering::Relaxed), before);
}

#[test]
fn an_approved_call_is_at_most_once_unless_its_tool_says_otherwise() {
    assert_eq!(echo("a").requires_approval().effect_class(), EffectClass::AtMostOnce);
    let own = echo("a").requires_approval().effect(EffectClass::Pure);
    assert_eq!(own.effect_class(), EffectClass::Pure);
}

#[test]
fn a_started_call_needs_no_second_approval_after_a_crash() {
    let mut hand = suspended([("guarded", json!({}))]);
    hand.answer("1.0", approved()).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.decide();
    let Action::RunTools { calls, .. } = hand.next() else { panic!("{:?}", hand.next()) };
    hand.start_tools(&calls);
    hand.start(Trigger::Recover).unwrap();
    hand.decide();
    assert_eq!(action_text(&hand.next()), "run 1.0 try 2 in doubt");
}

#[test]
fn the_limit_of_the_turn_holds_across_a_suspension() {
    let agent = built(builder().max_steps(2).tool(echo("guarded").requires_approval()));
    let mut hand = Hand::new(&agent);
    for _ in 0..2 {
        hand.drive([calls([("guarded", json!({}))])]);
        let call = format!("{}.0", hand.session().last_step());
        hand.answer(&call, approved()).unwrap();
        hand.start(Trigger::Resume).unwrap();
    }
    hand.drive([]);
    let error = hand.session().last_run().unwrap().error.clone().unwrap();
    assert!(error.is(ErrorCode::StepLimit), "{}", hand.story());
}

#[test]
fn a_queued_message_is_taken_between_two_steps_and_keeps_the_turn_open() {
    let mut hand = Hand::new(&agent());
    hand.reply(calls([("search", json!({}))]));
    hand.queue("and hurry");
    hand.result("1.0", json!({}));
    hand.drive([]);
    hand.queue("one more");
    hand.reply(text("Done?"));
    hand.drive([text("Done.")]);
    expect![[r#"
        user: go
        assistant: 1.0 search({})
        tool: 1.0 search = {}
        user: and hurry
        assistant: "Done?"
        user: one more
        assistant: "Done."
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
    assert_eq!(status(&hand), RunStatus::Completed);
    assert_eq!(hand.session().turn(), 1);
}

/// The store's clock went back after the resuming process had read that the deadline had passed.
#[test]
fn a_run_that_was_resumed_for_a_deadline_is_legal_before_it() {
    let mut hand = suspended([("ask", json!({}))]);
    hand.clock(61_001);
    hand.start(Trigger::Resume).unwrap();
    let again = read(&hand, Timestamp(1000));
    assert_eq!(again.last_run().unwrap().status, RunStatus::Running);
    assert!(again.can_continue_step(), "the call is expired for this reader, too");
}

/// A resume after an interrupt does not affect deadlines.
#[test]
fn a_reader_of_a_resumption_expires_no_call_before_its_deadline() {
    let mut hand = suspended([("ask", json!({})), ("ask", json!({}))]);
    hand.answer("1.0", Answer::Returned(json!("yes").into())).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.interrupt();
    hand.drive([]);
    assert_eq!(status(&hand), RunStatus::Interrupted);
    hand.start(Trigger::Resume).unwrap();
    let again = read(&hand, Timestamp(1000));
    assert!(!again.can_continue_step(), "the second call is still pending");
}
