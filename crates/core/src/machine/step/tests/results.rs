//! The results that hooks receive, and when they receive them.

use serde_json::json;

use crate::agent::{Agent, AnyAgent, CompanionMode};
use crate::event::{Answer, ChildStart, CompanionRef, Event, ToolFinish, ToolOutcome, Trigger};
use crate::id::{CallId, SessionId};
use crate::step::{Action, ResultKind, UndeliveredResults};
use crate::testing::{Hand, builder, built, calls, echo, finish, result_schema};
use crate::tool::{NoInput, Tool};

fn agent() -> AnyAgent {
    let ask = Tool::client::<NoInput>("ask", "Asks.");
    built(
        builder()
            .tool(ask)
            .tool(echo("guarded").requires_approval().editable())
            .tool(echo("search"))
            .tool(echo("submit").finish_with()),
    )
}

/// Notes the recorded results, and returns those that hooks receive now.
fn delivered(results: &mut UndeliveredResults, hand: &Hand) -> Vec<String> {
    let events: Vec<Event> = hand.log.iter().map(|(_, event)| event.clone()).collect();
    results.note(hand.session(), &agent(), &events);
    taken(results, &hand.next())
}

fn taken(results: &mut UndeliveredResults, next: &Action) -> Vec<String> {
    let results = results.take(next).into_iter();
    results.map(|result| format!("{} {}", result.call.id, result.input.text())).collect()
}

/// Returns the results that a run takes over from the log it finds.
fn taken_over(hand: &Hand) -> Vec<String> {
    let mut results = UndeliveredResults::taken_over(hand.session(), &agent());
    taken(&mut results, &Action::Idle)
}

#[test]
fn hooks_receive_answered_and_approved_calls_together_in_call_order() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([("guarded", json!({"x": 1})), ("ask", json!({}))])]);
    hand.answer("1.0", Answer::Approved { edited: Some(json!({"x": 2}).into()) }).unwrap();
    hand.answer("1.1", Answer::Returned(json!("yes").into())).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.decide();
    let mut results = UndeliveredResults::default();
    assert_eq!(delivered(&mut results, &hand), [""; 0], "the approved call is open");
    hand.result("1.0", json!({"x": 2}));
    assert_eq!(delivered(&mut results, &hand), [r#"1.0 {"x":2}"#, "1.1 {}"]);
    assert_eq!(delivered(&mut results, &hand), [""; 0], "once");
}

#[test]
fn the_run_that_takes_over_delivers_the_results_of_an_open_phase() {
    let mut hand = Hand::new(&agent());
    hand.decide();
    hand.reply(calls([("search", json!({"x": 1})), ("search", json!({"x": 2}))]));
    hand.result("1.1", json!({"x": 2}));
    assert_eq!(taken_over(&hand), [""; 0], "the live run delivers its own results");
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(taken_over(&hand), [r#"1.1 {"x":2}"#]);
}

/// The results were recorded before hooks received them, and it is unknown whether they did.
#[test]
fn a_settled_phase_of_an_open_step_may_be_delivered_again() {
    let mut hand = Hand::new(&agent());
    hand.decide();
    hand.reply(calls([("search", json!({"x": 1})), ("submit", json!({"x": 2}))]));
    hand.result("1.0", json!({"x": 1}));
    hand.start(Trigger::Recover).unwrap();
    assert!(matches!(hand.next(), Action::RunFinishTool(_)));
    assert_eq!(taken_over(&hand), [r#"1.0 {"x":1}"#]);
}

#[test]
fn of_a_suspended_step_only_the_results_it_waited_for_are_delivered_again() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([
        ("search", json!({"x": 1})),
        ("ask", json!({})),
        ("guarded", json!({"x": 3})),
    ])]);
    hand.answer("1.1", Answer::Returned(json!("yes").into())).unwrap();
    hand.answer("1.2", Answer::Approved { edited: None }).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.decide();
    hand.start(Trigger::Recover).unwrap();
    assert_eq!(taken_over(&hand), ["1.1 {}"], "1.0 was delivered before the suspension");
}

#[test]
fn companion_calls_after_the_pending_one_are_delivered() {
    let scout = Agent::builder("scout").description("Scouts.").system_prompt("You scout.");
    let scout = scout.model("scripted").output_schema(result_schema()).build().unwrap();
    let agent = built(builder().companion(&scout, CompanionMode::Blocking));
    let mut hand = Hand::new(&agent);
    let spawn = json!({"agent": "scout", "message": "go", "name": "one"});
    hand.decide();
    let list = ("companion__listChildren", json!({}));
    hand.reply(calls([("companion__spawnAgent", spawn), list.clone(), list]));
    let start = ChildStart {
        call: "1.0".into(),
        session: SessionId::from("s-agent-one"),
        agent: "scout".into(),
        companion: Some(CompanionRef { name: "one".into(), mode: CompanionMode::Blocking }),
        allowance: None,
    };
    hand.put(Event::ChildStarted(start.into())).unwrap();
    hand.put(Event::ChildWaiting { call: "1.0".into() }).unwrap();
    hand.drive([]);
    assert!(hand.session().last_run().unwrap().status.is_suspended());
    hand.start(Trigger::Resume).unwrap();
    hand.result("1.0", json!("found"));
    hand.result("1.1", json!([]));
    let mut results = UndeliveredResults::of_open_step(hand.session(), &agent);
    let delivered: Vec<_> =
        results.take(&Action::Idle).into_iter().map(|result| result.call.id).collect();
    assert_eq!(delivered, [CallId::from("1.0"), "1.1".into()], "neither was delivered before");
}

#[test]
fn a_finish_is_not_a_tool_result() {
    let agent = built(builder().output_schema(result_schema()));
    let mut hand = Hand::new(&agent);
    hand.decide();
    hand.reply(finish(json!({"result": "x"})));
    let mut results = UndeliveredResults::default();
    let events: Vec<Event> = hand.log.iter().map(|(_, event)| event.clone()).collect();
    results.note(hand.session(), &agent, &events);
    let results = results.take(&hand.next());
    let kinds: Vec<_> = results.into_iter().map(|result| result.kind).collect();
    assert_eq!(kinds, [ResultKind::Finish]);
}

fn result_of(text: &str) -> Event {
    let outcome = ToolOutcome::Success(json!(text).into());
    Event::from(ToolFinish { attempts: 1, ..ToolFinish::without_run("1.0".into(), outcome) })
}

/// Returns a step with one open call, and notes a result of that call that is not recorded yet.
fn noted(result: Event) -> (Hand, UndeliveredResults) {
    let mut hand = Hand::new(&agent());
    hand.decide();
    hand.reply(calls([("search", json!({}))]));
    let mut results = UndeliveredResults::default();
    results.note(hand.session(), &agent(), &[result]);
    (hand, results)
}

/// Returns the results that hooks receive now.
fn outcomes(results: &mut UndeliveredResults, hand: &Hand) -> Vec<ToolOutcome> {
    results.refresh(hand.session(), &agent());
    let results = results.take(&Action::Idle).into_iter();
    results.map(|result| result.finish.outcome.clone()).collect()
}

fn recorded(text: &str) -> Vec<ToolOutcome> {
    vec![ToolOutcome::Success(json!(text).into())]
}

/// A run executes a call again, and the result of the earlier owner is recorded first.
#[test]
fn hooks_receive_the_result_that_is_recorded() {
    let (mut hand, mut results) = noted(result_of("of this run"));
    hand.put(result_of("of the earlier owner")).unwrap();
    assert_eq!(outcomes(&mut results, &hand), recorded("of the earlier owner"));
    assert_eq!(outcomes(&mut results, &hand), [], "once");
}

/// A conflict may drop a result that was noted, such as that of a call whose deadline has passed.
#[test]
fn hooks_do_not_receive_a_result_that_is_not_recorded() {
    let (mut hand, mut results) = noted(result_of("expired"));
    assert_eq!(outcomes(&mut results, &hand), []);
    hand.put(result_of("answered")).unwrap();
    results.note(hand.session(), &agent(), &[result_of("answered")]);
    assert_eq!(outcomes(&mut results, &hand), recorded("answered"));
    results.note(hand.session(), &agent(), &[result_of("answered")]);
    assert_eq!(outcomes(&mut results, &hand), [], "once");
}
