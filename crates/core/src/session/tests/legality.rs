//! Tests of illegal events: each is refused with a reason and changes nothing.

use serde_json::json;

use crate::agent::AnyAgent;
use crate::error::ErrorCode;
use crate::event::{Event, ModelReply, RunOutcome, ToolFinish, ToolOutcome, Trigger};
use crate::id::{CallId, RunId};
use crate::llm::LlmResponse;
use crate::message::UserMessage;
use crate::session::Session;
use crate::state::Patch;
use crate::step::StepResult;
use crate::testing::{Hand, builder, built, calls, echo, text};
use crate::usage::Usage;

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")))
}

fn working() -> Hand {
    Hand::new(&agent())
}

/// Returns a session in the middle of step 1, whose call 1.1 has its result.
fn in_step() -> Hand {
    let mut hand = working();
    hand.reply(calls([("search", json!({})), ("search", json!({}))]));
    hand.result("1.1", json!(1));
    hand
}

fn ended() -> Hand {
    let mut hand = working();
    hand.drive([text("Bye.")]);
    hand
}

fn reply(step: u32, result: StepResult) -> Event {
    let response = LlmResponse::new(result, Usage::default());
    Event::from(ModelReply::from_response(step, response, 0))
}

fn result(call: &str) -> Event {
    let outcome = ToolOutcome::Success(json!(1).into());
    Event::from(ToolFinish::without_run(CallId::from(call), outcome))
}

fn started(run: &str, after: Option<&str>, trigger: Trigger) -> Event {
    Event::RunStarted {
        run: RunId::from(run),
        after: after.map(RunId::from),
        trigger,
        runtime: "hand".into(),
        stream_from: 0,
        budget: None,
        clears: None,
        trace: None,
    }
}

fn messages(texts: &[&str]) -> Event {
    Event::UserMessages { messages: texts.iter().map(|text| UserMessage::new(*text)).collect() }
}

fn completed() -> Event {
    Event::RunEnded { outcome: RunOutcome::Completed { output: None } }
}

fn interrupt(request: &str, run: &str) -> Event {
    Event::InterruptRequested { request: request.into(), run: run.into(), reason: None }
}

fn abort(request: &str, run: &str) -> Event {
    Event::AbortRequested { request: request.into(), run: run.into(), reason: None }
}

/// Checks that `event` by `run` is refused for this reason and that nothing changes.
#[track_caller]
fn refused_as(hand: &mut Hand, run: Option<&str>, event: Event, code: ErrorCode, reason: &str) {
    let before = format!("{:?}", hand.session());
    let name = event.name();
    let run = run.map(RunId::from);
    let error = hand.put_as(run.as_ref(), event).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.message().contains(reason), "expected the reason `{reason}`: {error}");
    if code == ErrorCode::LogInvalid {
        assert!(error.message().contains(name), "{error}");
    }
    assert_eq!(format!("{:?}", hand.session()), before, "the session has changed");
}

#[track_caller]
fn refused(hand: &mut Hand, event: Event, reason: &str) {
    refused_as(hand, Some("r1"), event, ErrorCode::LogInvalid, reason);
}

#[test]
fn a_session_starts_with_its_creation_event_and_no_other() {
    let created = || Event::SessionCreated {
        agent: "a".into(),
        tags: std::collections::BTreeMap::new(),
        state: json!({}).into(),
        parent: None,
    };
    let mut empty = Session::new("s".into());
    for event in [started("r1", None, Trigger::Execute), messages(&["hi"])] {
        let error = empty.apply(&event, Some(&"r1".into())).unwrap_err();
        assert!(error.message().contains("must be `session_created`"), "{error}");
    }
    empty.apply(&created(), None).unwrap();
    refused(&mut working(), created(), "the session exists");
}

#[test]
fn run_events_are_refused_without_a_current_run() {
    let without = "none is current";
    for event in [messages(&["hi"]), reply(2, text("x")), completed()] {
        refused(&mut ended(), event, without);
    }
    refused(&mut ended(), result("1.0"), "no such call");
    let closed = Event::StepClosed { step: 1 };
    refused_as(&mut in_step(), None, closed, ErrorCode::LogInvalid, "belongs to a run");
}

#[test]
fn run_events_are_refused_from_another_run() {
    let by = Some("r0");
    let code = ErrorCode::Superseded;
    refused_as(&mut working(), by, reply(1, text("x")), code, "another run owns");
    refused_as(&mut in_step(), by, Event::StepClosed { step: 1 }, code, "another run owns");
    refused_as(&mut working(), by, completed(), code, "another run owns");
    refused_as(&mut working(), by, messages(&["hi"]), code, "another run owns");
}

#[test]
fn messages_are_refused_if_there_is_none_or_a_step_is_open() {
    refused(&mut working(), messages(&[]), "there is no message");
    refused(&mut in_step(), messages(&["hi"]), "no message may enter an open step");
}

#[test]
fn replies_come_one_at_a_time_in_the_order_of_their_steps() {
    refused(&mut in_step(), reply(2, text("x")), "the step before it is open");
    refused(&mut working(), reply(2, text("x")), "not the next step");
    refused(&mut working(), reply(0, text("x")), "not the next step");
    let mut hand = working();
    hand.drive([calls([("search", json!({}))])]);
    refused(&mut hand, reply(1, text("x")), "not the next step");
}

#[test]
fn a_reply_is_refused_before_the_first_message() {
    let mut hand = Hand::refolded(&agent(), &working().log[..2]);
    refused(&mut hand, reply(1, text("x")), "no turn has started");
}

#[test]
fn a_call_has_one_result_and_only_if_it_was_made() {
    refused(&mut in_step(), result("1.1"), "has its result already");
    refused(&mut in_step(), result("1.2"), "no such call");
    refused(&mut in_step(), result("2.0"), "no such call");
    refused(&mut working(), result("1.0"), "no such call");
    let mut hand = working();
    hand.drive([calls([("search", json!({}))])]);
    refused(&mut hand, result("1.0"), "no such call in an open step");
}

#[test]
fn a_result_without_a_run_or_from_an_unknown_run_is_refused() {
    let code = ErrorCode::LogInvalid;
    refused_as(&mut in_step(), None, result("1.0"), code, "no run of this session");
    refused_as(&mut in_step(), Some("r9"), result("1.0"), code, "no run of this session");
}

#[test]
fn a_start_is_refused_for_a_call_that_is_not_open() {
    let start = |call: &str| Event::ToolStarted { call: call.into(), attempt: 1, timeout_ms: None };
    refused(&mut in_step(), start("1.1"), "no such open call");
    refused(&mut in_step(), start("1.7"), "no such open call");
    refused(&mut working(), start("1.0"), "no such open call");
}

#[test]
fn a_step_is_closed_once_and_not_before_every_call_is_answered() {
    refused(&mut in_step(), Event::StepClosed { step: 1 }, "a call of it has no result");
    refused(&mut in_step(), Event::StepClosed { step: 2 }, "another step is open");
    refused(&mut working(), Event::StepClosed { step: 1 }, "no step is open");
}

#[test]
fn the_open_step_takes_one_correction() {
    let correction = |step| Event::CorrectionSent { step, message: UserMessage::new("no") };
    let reason = "no such open step without a correction";
    refused(&mut working(), correction(1), reason);
    refused(&mut in_step(), correction(2), reason);
    let mut hand = in_step();
    hand.put(correction(1)).unwrap();
    refused(&mut hand, correction(1), reason);
}

#[test]
fn a_run_does_not_end_in_an_open_step_or_complete_without_a_step() {
    refused(&mut in_step(), completed(), "a step is open");
    let interrupted = Event::RunEnded { outcome: RunOutcome::Interrupted { reason: None } };
    refused(&mut in_step(), interrupted.clone(), "a step is open");
    refused(&mut working(), completed(), "no closed step completed the turn");
    working().put(interrupted).unwrap();
}

#[test]
fn a_run_starts_only_after_the_last_one_that_the_caller_saw() {
    let code = ErrorCode::Superseded;
    for after in [None, Some("r0")] {
        let event = started("r2", after, Trigger::Recover);
        refused_as(&mut working(), Some("r2"), event, code, "another run has started");
    }
    let twice = started("r1", Some("r1"), Trigger::Recover);
    refused(&mut working(), twice, "a run has this id already");
}

#[test]
fn a_run_starts_only_for_a_reason_that_holds() {
    let reason = "cannot start for this reason now";
    let all = [Trigger::Execute, Trigger::Continue, Trigger::Resume, Trigger::Recover];
    let check = |hand: fn() -> Hand, allowed: &[Trigger]| {
        for trigger in all {
            let event = started("r2", Some("r1"), trigger);
            if allowed.contains(&trigger) {
                hand().put(event).unwrap();
            } else {
                refused_as(&mut hand(), Some("r2"), event, ErrorCode::LogInvalid, reason);
            }
        }
    };
    check(working, &[Trigger::Recover]);
    check(in_step, &[Trigger::Recover]);
    check(ended, &[Trigger::Continue]);
    check(interrupted, &[Trigger::Continue, Trigger::Resume]);
}

fn interrupted() -> Hand {
    let mut hand = working();
    hand.interrupt();
    hand.drive([]);
    hand
}

#[test]
fn a_request_names_the_current_run_and_is_taken_once() {
    let code = ErrorCode::LogInvalid;
    for request in [interrupt, abort] {
        let mut hand = working();
        refused_as(&mut hand, None, request("q", "r0"), code, "the request is void");
        hand.put_as(None, request("q", "r1")).unwrap();
        refused_as(&mut hand, None, request("q", "r1"), code, "known already");
        refused_as(&mut ended(), None, request("q", "r1"), code, "the request is void");
    }
}

#[test]
fn nothing_is_healed_in_a_log_without_gaps() {
    let healed = |results| Event::HistoryHealed { results };
    refused(&mut working(), healed(Vec::new()), "exactly the calls without a result");
    let results = vec![("1.0".into(), ToolOutcome::Acknowledged)];
    refused(&mut in_step(), healed(results), "exactly the calls without a result");
}

#[test]
fn an_amount_that_is_no_number_never_enters_a_log() {
    for amount in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (source_type, source_name) = ("t".to_owned(), "n".to_owned());
        let event = usage(source_type, source_name, amount);
        refused(&mut working(), event, "not a finite number");
    }
}

#[test]
fn state_changes_and_usage_are_legal_at_any_point_of_a_run() {
    for hand in [working, in_step] {
        let patch = Patch::between(&json!(null), &json!({"a": 1}));
        hand().put(Event::StateChanged { patch, by: "h".to_owned() }).unwrap();
        let (source_type, source_name) = ("t".to_owned(), "n".to_owned());
        hand().put(usage(source_type, source_name, 1.5)).unwrap();
    }
}

fn usage(source_type: String, source_name: String, amount: f64) -> Event {
    Event::UsageRecorded { source_type, source_name, amount, call: None, success: true }
}
