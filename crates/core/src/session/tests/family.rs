//! Tests of child status, completion notices and stop actions.

use serde_json::json;

use crate::agent::{Agent, CompanionMode};
use crate::event::{Answer, ChildNotice, ChildStart, CompanionRef, Event, Trigger};
use crate::executor::AgentResult;
use crate::id::SessionId;
use crate::message::UserMessage;
use crate::session::{ChildStatus, CompletionNotice, StopAction};
use crate::testing::{Hand, builder, built, calls, result_schema, text};
use crate::tool::{NoInput, Tool};
use crate::usage::UsageRollup;

fn hand() -> Hand {
    Hand::new(&built(builder().tool(Tool::client::<NoInput>("ask", "Asks."))))
}

fn status(hand: &Hand, alive: bool, below: bool) -> ChildStatus {
    ChildStatus::of(hand.session(), alive, below).unwrap()
}

#[test]
fn an_unended_run_is_live_until_its_lease_expires() {
    let hand = hand();
    assert_eq!(status(&hand, true, false), ChildStatus::Live);
    assert_eq!(status(&hand, false, false), ChildStatus::Ready);
    assert_eq!(ChildStatus::Live.stop_action(true), StopAction::Request);
    assert_eq!(ChildStatus::Ready.stop_action(false), StopAction::Abort);
}

#[test]
fn a_suspended_child_is_ready_once_an_answer_arrives_or_a_descendant_can_continue() {
    let mut hand = hand();
    hand.drive([calls([("ask", json!({}))])]);
    assert_eq!(status(&hand, false, false), ChildStatus::Waiting);
    assert_eq!(status(&hand, false, true), ChildStatus::Ready);
    hand.answer("1.0", Answer::Returned(json!("yes").into())).unwrap();
    assert_eq!(status(&hand, false, false), ChildStatus::Ready);
}

#[test]
fn a_completed_child_is_aborted_only_for_good() {
    let mut hand = hand();
    hand.drive([text("Done.")]);
    let ended = status(&hand, false, false);
    let ChildStatus::Ended(result, used) = &ended else { panic!("{ended:?}") };
    assert_eq!(**result, AgentResult::of(hand.session().last_run().unwrap()));
    assert_eq!(used.steps, 1);
    assert_eq!(ended.stop_action(false), StopAction::None);
    assert_eq!(ended.stop_action(true), StopAction::Abort);
    assert_eq!(CompletionNotice::of(hand.session()), None, "the session is not a companion");
}

#[test]
fn a_companion_that_reports_its_turns_out_of_order_is_counted_once() {
    let scout = Agent::builder("scout").description("Scouts.").system_prompt("You scout.");
    let scout = scout.model("scripted").output_schema(result_schema()).build().unwrap();
    let mut hand = Hand::new(&built(builder().companion(&scout, CompanionMode::NonBlocking)));
    hand.decide();
    let spawn = json!({"agent": "scout", "message": "go", "name": "one"});
    hand.reply(calls([("companion__spawnAgent", spawn)]));
    let session = SessionId::from("s-agent-one");
    let start = ChildStart {
        call: "1.0".into(),
        session: session.clone(),
        agent: "scout".into(),
        companion: Some(CompanionRef { name: "one".into(), mode: CompanionMode::NonBlocking }),
        allowance: None,
    };
    hand.put(Event::ChildStarted(start.into())).unwrap();
    hand.result("1.0", json!("running"));
    let before = hand.session().spent();
    for (request, steps) in [("a", 2), ("c", 5), ("b", 3), ("d", 6)] {
        let used = UsageRollup { steps, ..UsageRollup::default() };
        let from = ChildNotice { session: session.clone(), used: used.into() };
        let (request, message) = (request.into(), UserMessage::new("done"));
        hand.put(Event::MessageQueued { request, message, from: Some(from), trace: None }).unwrap();
    }
    assert_eq!(hand.session().spent().since(&before).steps, 6);
    let own = UsageRollup::of(hand.session().usage_entries()).steps;
    assert_eq!(hand.session().tree_usage().steps, own + 6);
}

#[test]
fn an_aborted_child_is_done_and_lists_its_children() {
    let mut hand = hand();
    assert!(hand.session().children_to_abort().is_none());
    hand.abort();
    hand.drive([]);
    assert_eq!(status(&hand, false, false).stop_action(true), StopAction::None);
    let (children, reason) = hand.session().children_to_abort().unwrap();
    assert!(children.is_empty());
    assert_eq!(reason.as_deref(), Some("stop"));
}

#[test]
fn an_interrupted_child_can_continue() {
    let mut hand = hand();
    hand.interrupt();
    hand.drive([]);
    let interrupted = status(&hand, false, false);
    assert_eq!(interrupted, ChildStatus::Interrupted);
    assert!(interrupted.can_continue());
    hand.start(Trigger::Resume).unwrap();
    assert_eq!(status(&hand, true, false), ChildStatus::Live);
}
