//! Data beyond what one append carries.

use std::time::Duration;

use helix_agents_conformance::faults::Fault;
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Event, ToolFinish, ToolOutcome, decode};
use helix_agents_core::executor::Input;
use helix_agents_core::id::{CallId, RunId};
use helix_agents_core::session::{
    Durability, Journal, RunStatus, Session, StopKind, execute_events, request,
};
use helix_agents_core::state::Patch;
use helix_agents_core::step::{Action, StepResult};
use helix_agents_core::store::{MAX_APPEND_BYTES, MIN_APPEND_BYTES, StateStore};
use helix_agents_core::tool::Tool;
use helix_agents_test::Gate;
use serde_json::json;

use crate::support::{
    World, agent, calls, code, id, names, new_session, reply, result, start_run, text,
};

/// The number of calls of a step, each with a result of more than an eighth of an append.
const CALLS: usize = 12;

/// A world whose store takes small appends.
fn small() -> World {
    let world = World::new();
    World { faults: world.faults.clone().refuse_appends_over(MIN_APPEND_BYTES), ..world }
}

/// A large result, which no other is like.
fn large(index: usize) -> Event {
    result(&format!("1.{index}"), json!({"mark": format!("<{index}>"), "x": "x".repeat(2_000)}))
}

async fn step_of_many(world: &World) -> Journal {
    world.answered(calls(&["search"; CALLS])).await
}

fn all() -> Vec<Event> {
    (0..CALLS).map(large).collect()
}

/// The calls that are to run.
fn open(journal: &Journal) -> Vec<CallId> {
    match journal.next() {
        Action::RunTools { calls, .. } => calls.into_iter().map(|task| task.call).collect(),
        other => panic!("{other:?}"),
    }
}

/// The error of the last run.
fn failure(session: &Session) -> String {
    session.last_run().unwrap().error.as_ref().unwrap().to_string()
}

#[tokio::test]
async fn results_that_do_not_share_an_append_take_several() {
    let world = small();
    let mut journal = step_of_many(&world).await;
    journal.stage(&all()).unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(committed.events.len(), CALLS + 1, "{}", names(&committed.events));
    let appends = world.appends().await;
    assert_eq!(appends.len(), 2 + CALLS);
    assert!(appends.iter().all(|append| append.body.len() < MIN_APPEND_BYTES / 4), "well below");
    let session = world.session().await;
    assert_eq!(session.position(), journal.session().position());
    assert_eq!(session.open_step().map(|step| step.reply.step), None, "the step is closed");
    assert_eq!(
        format!("{:?}", session.transcript()),
        format!("{:?}", journal.session().transcript())
    );
}

#[tokio::test]
async fn a_limit_of_an_append_that_is_not_lowered_takes_what_is_usual_at_once() {
    let world = World::new();
    assert_eq!(StateStore::max_append_bytes(&world.faults), MAX_APPEND_BYTES);
    let mut journal = step_of_many(&world).await;
    journal.stage(&all()).unwrap();
    journal.commit().await.unwrap();
    assert_eq!(world.appends().await.len(), 3);
}

#[tokio::test]
async fn the_next_run_appends_what_a_crash_between_two_appends_omitted() {
    for recorded in 0..CALLS {
        let world = World { lease: Duration::ZERO, ..small() };
        let mut journal = step_of_many(&world).await;
        let mark = format!("<{recorded}>");
        world.faults.inject(&mark, Fault::Refuse(ErrorCode::StoreFull));
        journal.stage(&all()).unwrap();
        assert_eq!(code(journal.commit().await), "store_full");
        assert_eq!(world.appends().await.len(), 2 + recorded);
        let mut next = world.taken_over("r2").await;
        let missing: Vec<_> = (recorded..CALLS).map(|index| CallId::new(1, index)).collect();
        assert_eq!(open(&next), missing);
        next.stage(&(recorded..CALLS).map(large).collect::<Vec<_>>()).unwrap();
        next.commit().await.unwrap();
        next.stage(&[reply(2, text("Done."))]).unwrap();
        next.end_run().unwrap();
        next.commit().await.unwrap();
        assert_eq!(world.session().await.last_run().unwrap().status, RunStatus::Completed);
    }
}

/// Commits results while a request comes in before the one that is named.
async fn meanwhile(world: &World, kind: StopKind, before: usize) -> (Journal, Vec<(u64, Event)>) {
    let mut journal = step_of_many(world).await;
    let gate = Gate::new();
    world.faults.inject(&format!("<{before}>"), Fault::HoldBefore(gate.clone()));
    journal.stage(&all()).unwrap();
    let commit = async {
        let committed = journal.commit().await.unwrap();
        committed.numbered().map(|(seq, event)| (seq, event.clone())).collect()
    };
    let ask = async {
        gate.reached().await;
        request(world.request_context(), &id(), None, kind, None).await.unwrap();
        gate.open();
    };
    let (numbered, ()) = tokio::join!(commit, ask);
    (journal, numbered)
}

#[tokio::test]
async fn a_request_between_two_appends_is_taken_in_and_the_rest_recorded_after_it() {
    for before in [0, 5, CALLS - 1] {
        let world = small();
        let (mut journal, numbered) = meanwhile(&world, StopKind::Interrupt, before).await;
        assert_eq!(numbered.len(), CALLS + 1);
        let log = world.events().await;
        for (seq, event) in &numbered {
            let recorded = log.iter().find(|recorded| recorded.seq == *seq).unwrap();
            assert_eq!(recorded.event, *event, "at {seq}");
        }
        assert!(journal.session().interrupt_request().is_some());
        journal.end_run().unwrap();
        journal.commit().await.unwrap();
        let session = world.session().await;
        assert_eq!(session.last_run().unwrap().status, RunStatus::Interrupted);
        assert_eq!(session.position(), journal.session().position());
    }
}

#[tokio::test]
async fn an_abort_between_two_appends_keeps_the_results_that_were_there() {
    let world = small();
    let (mut journal, numbered) = meanwhile(&world, StopKind::Abort, 5).await;
    assert_eq!(numbered.len(), CALLS + 1);
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let session = world.session().await;
    assert_eq!(session.last_run().unwrap().status, RunStatus::Aborted);
    let succeeded =
        session.closed_step().unwrap().calls.iter().filter(|call| {
            matches!(call.finish.as_ref().unwrap().outcome, ToolOutcome::Success(_))
        });
    assert_eq!(succeeded.count(), CALLS);
}

#[tokio::test]
async fn results_of_a_run_that_was_replaced_between_two_appends_are_handed_in() {
    let world = World { lease: Duration::ZERO, ..small() };
    let mut journal = step_of_many(&world).await;
    let gate = Gate::new();
    world.faults.inject("<5>", Fault::HoldBefore(gate.clone()));
    journal.stage(&all()).unwrap();
    let replace = async {
        gate.reached().await;
        world.taken_over("r2").await;
        gate.open();
    };
    let (committed, ()) = tokio::join!(journal.commit(), replace);
    assert_eq!(code(committed), "superseded");
    let session = world.session().await;
    assert_eq!(session.last_run().unwrap().id, RunId::from("r2"));
    let open = session.open_step().unwrap();
    assert!(open.calls.iter().all(|call| call.finish.is_some()), "all results are there");
    let sizes = world.appends().await.into_iter().map(|append| append.body.len());
    assert!(sizes.max().unwrap() < MIN_APPEND_BYTES / 4);
}

#[tokio::test]
async fn per_step_does_not_hold_back_more_than_an_append_carries() {
    let world = World { durability: Durability::PerStep, ..small() };
    let mut journal = step_of_many(&world).await;
    assert_eq!(world.appends().await.len(), 1, "the reply is held back");
    for index in 0..CALLS {
        journal.stage(&[large(index)]).unwrap();
        journal.commit().await.unwrap();
    }
    let appends = world.appends().await;
    assert!(appends.len() > CALLS / 2, "{} appends", appends.len());
    assert_eq!(journal.session().position(), world.session().await.position());
    assert!(world.session().await.open_step().is_none());
}

#[tokio::test]
async fn a_result_that_exceeds_an_append_is_a_failed_one() {
    let world = small();
    let mut journal = world.answered(calls(&["search", "pay"])).await;
    let huge = "x".repeat(MIN_APPEND_BYTES);
    let by_state = ToolFinish {
        attempts: 1,
        state_patch: Patch::between(&json!({}), &json!({"huge": huge})),
        ..ToolFinish::without_run(CallId::from("1.1"), ToolOutcome::Success(json!(1).into()))
    };
    journal.stage(&[result("1.0", json!(huge)), by_state.into()]).unwrap();
    journal.commit().await.unwrap();
    let session = world.session().await;
    for call in &session.closed_step().unwrap().calls {
        let finish = call.finish.as_ref().unwrap();
        let ToolOutcome::Error(error) = &finish.outcome else { panic!("{:?}", finish.outcome) };
        assert!(error.is(ErrorCode::ToolResultTooLarge), "{error}");
        assert_eq!(finish.attempts, 1, "it ran");
    }
    assert!(session.state().get("huge").is_none());
    assert_eq!(session.position(), journal.session().position());
}

#[tokio::test]
async fn a_reply_that_no_append_carries_fails_the_run() {
    let world = small();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, text(&"x".repeat(MIN_APPEND_BYTES)))]).unwrap();
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let session = world.session().await;
    assert_eq!(session.last_run().unwrap().status, RunStatus::Failed);
    assert!(
        failure(&session).starts_with("too_large: the model's reply has 16"),
        "{}",
        failure(&session)
    );
    assert_eq!(session.usage().tokens.output_tokens, 5, "it was paid for");
}

#[tokio::test]
async fn a_change_of_a_hook_that_no_append_carries_is_dropped() {
    let world = small();
    let mut journal = world.answered(calls(&["search"])).await;
    let patch = Patch::between(&json!({}), &json!({"huge": "x".repeat(MIN_APPEND_BYTES)}));
    let change = Event::StateChanged { patch, by: "after_tool".to_owned() };
    journal.stage(&[change, result("1.0", json!({}))]).unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "tool_finished 1.0, step_closed");
}

#[tokio::test]
async fn an_input_that_no_append_carries_is_refused() {
    let world = small();
    let session = Session::new(id());
    let input = Input::from("x".repeat(MIN_APPEND_BYTES));
    let tags = std::collections::BTreeMap::new();
    let events =
        execute_events(&session, &agent(), &start_run("r1"), &input, &tags, false).unwrap();
    let mut journal = Journal::new(world.journal_config(), agent(), session, RunId::from("r1"));
    assert_eq!(code(journal.create(new_session(), events).await), "too_large");
    assert!(world.faults.head(&id()).await.unwrap().is_none(), "nothing was created");
}

#[tokio::test]
async fn a_log_that_was_divided_is_read_as_one() {
    let world = small();
    let mut journal = step_of_many(&world).await;
    journal.stage(&all()).unwrap();
    journal.commit().await.unwrap();
    let mut version = 0;
    for append in world.appends().await {
        assert_eq!(append.first, version + 1);
        version += decode(&id(), &append).unwrap().len() as u64;
    }
    assert_eq!(version, journal.acknowledged());
}

/// An agent whose tool waits for an approval, with a large schema of the arguments that may be edited.
fn asking() -> AnyAgent {
    let schema = json!({"type": "object", "description": "x".repeat(MIN_APPEND_BYTES / 3)});
    let ask = Tool::dynamic("ask", "Asks.", schema, |input, _| async { Ok(input) });
    let ask = ask.requires_approval().editable();
    Agent::builder("tester").system_prompt("p").tool(ask).build().unwrap().erased()
}

/// A journal of a run of that agent, whose model has called its tool so many times.
async fn asked(world: &World, times: usize) -> Journal {
    let (session, agent) = (Session::new(id()), asking());
    let tags = std::collections::BTreeMap::new();
    let input = Input::from("go");
    let events = execute_events(&session, &agent, &start_run("r1"), &input, &tags, false).unwrap();
    let mut journal = Journal::new(world.journal_config(), agent, session, RunId::from("r1"));
    journal.create(new_session(), events).await.unwrap();
    journal.stage(&[reply(1, calls(&vec!["ask"; times]))]).unwrap();
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    journal
}

#[tokio::test]
async fn calls_whose_suspension_is_too_large_fail_and_the_run_continues() {
    let world = small();
    asked(&world, 2).await;
    assert_eq!(world.session().await.pending_calls().count(), 2, "a suspension that fits");

    let world = small();
    let mut journal = asked(&world, 4).await;
    let session = world.session().await;
    assert_eq!(session.last_run().unwrap().status, RunStatus::Running);
    let step = session.closed_step().unwrap();
    assert_eq!(step.calls.len(), 4);
    for call in &step.calls {
        let finish = call.finish.as_ref().unwrap();
        let ToolOutcome::Error(error) = &finish.outcome else { panic!("{:?}", finish.outcome) };
        assert!(error.is(ErrorCode::TooLarge), "{error}");
        assert_eq!(finish.attempts, 0, "it did not run");
    }
    assert!(matches!(journal.next(), Action::CallModel { step: 2, .. }));
    // The model asks for less then.
    journal.stage(&[reply(2, calls(&["ask"]))]).unwrap();
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let session = world.session().await;
    assert_eq!(session.pending_calls().count(), 1);
    assert_eq!(session.position(), journal.session().position());
}

/// A reply of a model that hands in its output.
fn handed_in(output: &str) -> StepResult {
    let StepResult::ToolCalls { tool_calls, content, thinking, stop_reason, .. } =
        calls(&["__finish__"])
    else {
        unreachable!()
    };
    let mut tool_calls = tool_calls;
    tool_calls[0].arguments = json!({ "output": output }).into();
    StepResult::ToolCalls {
        tool_calls,
        content,
        thinking,
        stop_reason,
        sub_agent_calls: Vec::new(),
    }
}

#[tokio::test]
async fn an_output_that_grows_beyond_an_append_is_corrected() {
    let world = small();
    let schema = json!({"type": "array", "items": {"type": "number"}});
    let agent =
        Agent::builder("tester").system_prompt("p").output_schema(schema).build().unwrap().erased();
    let session = Session::new(id());
    let tags = std::collections::BTreeMap::new();
    let input = Input::from("go");
    let events = execute_events(&session, &agent, &start_run("r1"), &input, &tags, false).unwrap();
    let mut journal = Journal::new(world.journal_config(), agent, session, RunId::from("r1"));
    journal.create(new_session(), events).await.unwrap();
    // As text it is short, and as an array of numbers each of them has 18 characters.
    let numbers = format!("[{}1e15]", "1e15,".repeat(1_500));
    journal.stage(&[reply(1, handed_in(&numbers))]).unwrap();
    journal.commit().await.unwrap();
    let session = world.session().await;
    let finish = session.closed_step().unwrap().calls[0].finish.clone().unwrap();
    assert!(
        matches!(&finish.outcome, ToolOutcome::Error(error) if error.is(ErrorCode::ToolResultTooLarge))
    );
    assert!(session.closed_step().unwrap().correction.is_some());
    assert!(matches!(journal.next(), Action::CallModel { step: 2, .. }));
    assert_eq!(session.position(), journal.session().position());
}
