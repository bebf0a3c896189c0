//! Budgets in the state machine: when they are checked, what they refuse, and how usage is counted.

use expect_test::expect;
use serde_json::json;

use crate::agent::{AgentBuilder, AnyAgent};
use crate::budget::Budget;
use crate::clock::Timestamp;
use crate::event::{Answer, ChildStart, Event, RecordedEvent, Trigger};
use crate::session::Session;
use crate::step::{Action, StepIterator, StepResult};
use crate::testing::{Hand, action_text, builder, built, calls, echo, finish, result_schema, text};
use crate::tool::NoInput;

fn limited(budget: Budget) -> AgentBuilder {
    builder().tool(echo("search")).budget(budget)
}

fn search() -> StepResult {
    calls([("search", json!({}))])
}

fn failure(hand: &Hand) -> String {
    hand.session().last_run().unwrap().error.clone().unwrap().to_string()
}

fn raise(hand: &mut Hand, budget: Budget) {
    hand.start_with(Trigger::Resume, Some(budget)).unwrap();
}

#[test]
fn a_takeover_counts_what_the_run_before_it_used() {
    let mut hand = Hand::new(&built(limited(Budget::new().tokens(30))));
    hand.drive([search()]);
    hand.start(Trigger::Recover).unwrap();
    hand.drive([search(), text("Never requested.")]);
    assert!(failure(&hand).contains("tokens, 30 used of 30"), "{}", failure(&hand));
}

#[test]
fn a_further_turn_is_paid_from_the_same_budget() {
    let mut hand = Hand::new(&built(limited(Budget::new().steps(2))));
    hand.drive([text("One.")]);
    hand.start(Trigger::Continue).unwrap();
    hand.say("again");
    hand.drive([text("Two.")]);
    assert_eq!(hand.session().status().as_str(), "completed");
    hand.start(Trigger::Continue).unwrap();
    hand.say("again");
    hand.drive([text("Three.")]);
    assert!(failure(&hand).contains("steps, 2 used of 2"), "{}", failure(&hand));
    raise(&mut hand, Budget::new().steps(3));
    hand.drive([text("Three.")]);
    assert_eq!(hand.session().status().as_str(), "completed");
}

#[test]
fn a_limit_of_the_session_replaces_the_agents_limit() {
    let mut hand = Hand::new(&built(limited(Budget::new().steps(1).tokens(500))));
    hand.drive([search()]);
    raise(&mut hand, Budget::new().steps(9));
    let budget = hand.session().budget(hand.iterator.agent());
    assert_eq!(budget, Budget::new().steps(9).tokens(500));
    hand.interrupt();
    hand.drive([]);
    raise(&mut hand, Budget::new().tokens(600));
    assert_eq!(hand.session().recorded_budget(), &Budget::new().steps(9).tokens(600));
}

#[test]
fn the_last_step_of_a_budget_is_kept_for_the_output() {
    let agent = built(limited(Budget::new().steps(2)).output_schema(result_schema()));
    let mut hand = Hand::new(&agent);
    hand.drive([search()]);
    assert_eq!(action_text(&hand.next()), "call model 2, forced");
}

#[test]
fn an_output_that_is_paid_for_is_accepted() {
    let agent = built(limited(Budget::new().tokens(1)).output_schema(result_schema()));
    let mut hand = Hand::new(&agent);
    hand.drive([finish(json!({"result": "x"}))]);
    assert_eq!(hand.session().status().as_str(), "completed");

    let submit = echo("submit").finish_with();
    let mut hand = Hand::new(&built(limited(Budget::new().tokens(1)).tool(submit)));
    hand.drive([calls([("search", json!({})), ("submit", json!({"x": 1}))])]);
    expect![[r#"
        reply 1: 1.0 search({}), 1.1 submit({"x":1})
        finished 1.0: error budget_exceeded: not run: the budget is used up: tokens, 15 used of 1
        finished 1.1: {"x":1}; output {"x":1}
        closed 1
        ended completed: {"x":1}
    "#]]
    .assert_eq(&hand.story());
}

/// No approval is requested for a call that would not run.
#[test]
fn no_approval_is_requested_for_calls_that_the_budget_refuses() {
    let guarded = echo("guarded").requires_approval();
    let ask = crate::tool::Tool::client::<NoInput>("ask", "Asks.");
    let agent = built(limited(Budget::new().tool_calls(1)).tool(guarded).tool(ask));
    let mut hand = Hand::new(&agent);
    let three = [("search", json!({})), ("guarded", json!({})), ("ask", json!({}))];
    hand.drive([calls(three)]);
    let waits = hand.session().last_run().unwrap().suspended.clone().unwrap();
    let asked: Vec<_> = waits.calls.iter().map(|call| &*call.tool).collect();
    assert_eq!(asked, ["ask"], "the client runs a client tool, not the framework");
}

/// The budget reserved a tool call for the approved call.
#[test]
fn an_approved_call_runs_on_its_reserved_budget() {
    let guarded = echo("guarded").requires_approval();
    let agent = built(limited(Budget::new().tool_calls(2)).tool(guarded));
    let mut hand = Hand::new(&agent);
    let three = [("guarded", json!({})), ("search", json!({})), ("search", json!({}))];
    hand.drive([calls(three)]);
    hand.answer("1.0", Answer::Approved { edited: None }).unwrap();
    hand.start(Trigger::Resume).unwrap();
    hand.drive([text("Done.")]);
    assert_eq!(hand.session().usage().tool_calls, 2);
    assert!(failure(&hand).contains("tool_calls, 2 used of 2"), "{}", failure(&hand));
}

fn family(budget: Budget) -> AnyAgent {
    let below = crate::agent::Agent::builder("below")
        .description("Helps.")
        .system_prompt("Help.")
        .output_schema(result_schema())
        .build()
        .unwrap();
    built(limited(budget).sub_agent(&below))
}

#[test]
fn children_share_what_the_parents_own_calls_leave() {
    let budget = Budget::new().tokens(115).tool_calls(5).steps(4);
    let mut hand = Hand::new(&family(budget));
    let ask = ("subagent__below", json!({"message": "go"}));
    hand.drive([calls([ask.clone(), ("search", json!({})), ask.clone(), ask])]);
    let Action::StartChildren(tasks) = hand.next() else { panic!("{:?}", hand.next()) };
    let share = Budget::new().tokens(25).tool_calls(1).steps(0);
    assert_eq!(tasks.iter().map(|task| task.allowance).collect::<Vec<_>>(), [Some(share); 3]);
    for task in tasks {
        let start = ChildStart {
            call: task.call,
            session: task.session,
            agent: "below".into(),
            companion: None,
            allowance: task.allowance,
        };
        hand.put(Event::ChildStarted(start.into())).unwrap();
    }
    let aside = hand.session().reserved();
    assert_eq!((aside.tokens, aside.tool_calls), (75, 3));
    assert!(matches!(hand.next(), Action::RunTools { calls, .. } if calls.len() == 1));
}

#[test]
fn children_do_not_start_on_an_exhausted_budget() {
    let mut hand = Hand::new(&family(Budget::new().tokens(15)));
    hand.drive([calls([("subagent__below", json!({"message": "go"}))])]);
    assert!(failure(&hand).contains("tokens, 15 used of 15"), "{}", failure(&hand));
}

/// Folds the same events, each with its time by the store's clock.
fn at_times(hand: &Hand, times: &[i64]) -> Session {
    let mut session = Session::new("s".into());
    for (((run, event), at), seq) in hand.log.iter().zip(times).zip(1..) {
        let (run, event, at) = (run.clone(), event.clone(), Timestamp(*at));
        let schema = crate::event::SCHEMA;
        session.apply_recorded(&RecordedEvent { seq, at, run, schema, event }).unwrap();
    }
    session
}

#[test]
fn only_the_time_of_runs_counts() {
    let agent = built(limited(Budget::new()));
    let mut hand = Hand::new(&agent);
    hand.drive([search()]);
    // The run crashes and is taken over; the next model call fails; another turn starts much later.
    hand.start(Trigger::Recover).unwrap();
    hand.drive([text("One.")]);
    hand.start(Trigger::Continue).unwrap();
    hand.say("again");
    let log: Vec<_> = hand.log.iter().map(|(_, event)| event.name()).collect();
    let names = [
        "session_created",
        "run_started",
        "user_messages",
        "model_replied",
        "tool_finished",
        "step_closed",
        "run_started",
        "model_replied",
        "step_closed",
        "run_ended",
        "run_started",
        "user_messages",
    ];
    assert_eq!(log, names);
    let times = [0, 0, 0, 10, 15, 15, 1_000, 1_030, 1_030, 1_031, 9_000, 9_000];
    let mut session = at_times(&hand, &times);
    assert_eq!(session.spent().wall_time_ms, 15 + 31);
    session.observe(Timestamp(9_004));
    assert_eq!(session.spent().wall_time_ms, 50, "the running run counts");
    let ended = at_times(&Hand::refolded(&agent, &hand.log[..10]), &times[..10]);
    let mut later = ended.clone();
    later.observe(Timestamp(99_000));
    assert_eq!(later.spent(), ended.spent(), "no run is running");
}

#[test]
fn time_that_passed_while_an_append_was_written_counts() {
    let agent = built(limited(Budget::new().wall_time(std::time::Duration::from_millis(50))));
    let mut hand = Hand::new(&agent);
    hand.drive([search()]);
    let session = at_times(&hand, &[0, 0, 0, 10, 10, 10]);
    let mut iterator = StepIterator::new(agent, session);
    iterator.decide().unwrap();
    assert_eq!(action_text(&iterator.next()), "call model 2");
    iterator.acknowledge("a".into(), Timestamp(60));
    assert!(action_text(&iterator.next()).starts_with("end failed"), "{:?}", iterator.next());
}
