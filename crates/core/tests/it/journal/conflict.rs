//! Tests of conflicts with concurrent appends: facts are kept, decisions are derived again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helix_agents_conformance::faults::FaultStore;
use helix_agents_core::error::Result;
use helix_agents_core::event::{ChildStart, Event, ToolFinish, ToolOutcome};
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    Journal, MessageOrigin, RunStatus, Session, StopKind, Submission, event_chunks, queue_message,
    request, submit,
};
use helix_agents_core::state::Patch;
use helix_agents_core::step::Action;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::ChunkKind;
use helix_agents_store_memory::{MemoryOptions, MemoryStore};
use serde_json::json;

use crate::support::{
    NoWait, World, agent, calls, code, first_events, id, names, new_session, reply, result,
    started, text,
};

fn child_of(call: &str) -> Event {
    let start = ChildStart {
        call: call.into(),
        session: format!("s-sub-{call}").as_str().into(),
        agent: "helper".into(),
        companion: None,
        allowance: None,
    };
    Event::ChildStarted(start.into())
}

async fn ask(world: &World, kind: StopKind) -> Result<()> {
    request(world.request_context(), &id(), None, kind, Some("stop".to_owned())).await.map(drop)
}

#[tokio::test]
async fn facts_are_appended_after_a_concurrent_request() {
    let world = World::new();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, calls(&["search"]))]).unwrap();
    ask(&world, StopKind::Interrupt).await.unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "model_replied");
    assert_eq!(world.log().await[1..], ["interrupt_requested", "model_replied"]);
    assert_eq!(journal.session().position(), world.session().await.position());
}

#[tokio::test]
async fn a_concurrent_interrupt_ends_the_run_at_the_boundary() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search"])).await;
    journal.stage(&[result("1.0", json!({}))]).unwrap();
    ask(&world, StopKind::Interrupt).await.unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "tool_finished 1.0, step_closed");
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let run = world.session().await.last_run().unwrap().clone();
    assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Interrupted, Some("stop")));
}

/// Hooks receive all results before the step is closed, so the commit that reads the abort records only the fact.
#[tokio::test]
async fn a_concurrent_abort_answers_the_open_calls_with_the_next_decisions() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search", "search"])).await;
    journal.stage(&[result("1.1", json!({}))]).unwrap();
    ask(&world, StopKind::Abort).await.unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "tool_finished 1.1");
    let decided = journal.stage(&[]).unwrap();
    assert_eq!(names(&decided), "tool_finished 1.0, step_closed");
    assert_eq!(names(&journal.commit().await.unwrap().events), names(&decided));
    assert!(matches!(journal.next(), Action::End(_)));
}

#[tokio::test]
async fn an_answer_that_was_accepted_in_time_replaces_the_staged_expiry_of_its_call() {
    let clock = Arc::new(NoWait::default());
    let store = MemoryStore::with_clock(MemoryOptions::default(), Arc::<NoWait>::clone(&clock));
    let faults = FaultStore::new(Arc::new(store));
    let world = World { faults, clock: Arc::clone(&clock), ..World::new() };
    let mut journal = world.answered(calls(&["sign", "sign"])).await;
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let answer = |call: &str| Submission::result(call, &"signed").unwrap();
    submit(world.request_context(), &id(), &answer("1.1")).await.unwrap();
    let mut journal = world.taken_over("r2").await;
    // The run observes the expired deadline before an answer arrives that was checked in time. The
    // clock is set back for that check.
    clock.now_ms.store(1_001, Ordering::Relaxed);
    journal.observe_clock().await.unwrap();
    let expired = journal.stage(&[]).unwrap();
    clock.now_ms.store(1_000, Ordering::Relaxed);
    submit(world.request_context(), &id(), &answer("1.0")).await.unwrap();
    assert_eq!(names(&journal.commit().await.unwrap().events), "");
    journal.stage(&[]).unwrap();
    let committed = journal.commit().await.unwrap();
    let is_failure = |event: &&Event| match event {
        Event::UsageRecorded { success, .. } => !success,
        Event::ToolFinished(finish) => !matches!(finish.outcome, ToolOutcome::Success(_)),
        _ => false,
    };
    let failures = |events: &[Event]| names(events.iter().filter(is_failure));
    assert_eq!(failures(&expired), "usage_recorded, tool_finished 1.0");
    assert_eq!(names(&expired), names(&committed.events));
    assert_eq!(failures(&committed.events), "");
}

#[tokio::test]
async fn catching_up_decides_nothing() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search"])).await;
    ask(&world, StopKind::Abort).await.unwrap();
    journal.catch_up().await.unwrap();
    assert!(journal.next().is_decision(), "{:?}", journal.next());
    let decided = journal.stage(&[]).unwrap();
    assert_eq!(names(&decided), "tool_finished 1.0, step_closed");
}

#[tokio::test]
async fn the_end_of_a_run_is_decided_again_after_a_conflict() {
    let world = World::new();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    journal.end_run().unwrap();
    assert_eq!(
        journal.session().last_run().unwrap().status,
        RunStatus::Completed,
        "the staged end"
    );
    ask(&world, StopKind::Abort).await.unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "model_replied, step_closed, run_ended");
    let run = world.session().await.last_run().unwrap().clone();
    assert_eq!(run.status, RunStatus::Aborted);
    assert_eq!(format!("{:?}", journal.session().last_run().unwrap()), format!("{run:?}"));
}

#[tokio::test]
async fn an_end_that_is_still_valid_is_appended() {
    let world = World::new();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    journal.end_run().unwrap();
    ask(&world, StopKind::Interrupt).await.unwrap();
    journal.commit().await.unwrap();
    let session = world.session().await;
    assert_eq!(session.last_run().unwrap().status, RunStatus::Completed);
    assert_eq!(session.turn_steps(), 1, "nothing is applied twice");
}

#[tokio::test]
async fn catching_up_applies_requests_and_keeps_staged_events() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search", "search"])).await;
    journal.stage(&[result("1.1", json!({}))]).unwrap();
    ask(&world, StopKind::Abort).await.unwrap();
    journal.catch_up().await.unwrap();
    assert!(journal.session().abort_request().is_some());
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "tool_finished 1.1");
    journal.catch_up().await.unwrap();
    assert_eq!(journal.session().position(), world.session().await.position());
}

#[tokio::test]
async fn an_owner_can_check_for_stop_requests() {
    let world = World::new();
    let journal = world.create().await;
    let known = journal.acknowledged();
    let asked = |run: &'static str| {
        let world = world.clone();
        async move {
            Journal::requested(&world.faults, &id(), &run.into(), known)
                .await
                .unwrap()
                .map(|(kind, _)| kind)
        }
    };
    assert_eq!(asked("r1").await, None);
    ask(&world, StopKind::Interrupt).await.unwrap();
    assert_eq!(asked("r1").await, Some(StopKind::Interrupt));
    ask(&world, StopKind::Abort).await.unwrap();
    assert_eq!(asked("r1").await, Some(StopKind::Abort), "an abort takes precedence");
    assert_eq!(asked("r2").await, None, "the requests are for another run");
}

#[tokio::test]
async fn a_fact_that_is_recorded_already_counts_as_recorded_now() {
    let world = World::new();
    let (mut one, mut two) = (world.create().await, world.journal("r1").await);
    one.stage(&[reply(1, calls(&["search"]))]).unwrap();
    one.commit().await.unwrap();
    two.stage(&[reply(1, text("Another answer."))]).unwrap();
    let committed = two.commit().await.unwrap();
    assert_eq!(committed.events, [], "the recorded reply is used");
    assert!(matches!(two.next(), Action::RunTools { .. }));

    one.stage(&[result("1.0", json!("first"))]).unwrap();
    one.commit().await.unwrap();
    two.stage(&[result("1.0", json!("second"))]).unwrap();
    assert_eq!(two.commit().await.unwrap().events, [], "the recorded result is used");
    let log = world.log().await;
    assert_eq!(log[1..], ["model_replied", "tool_finished 1.0, step_closed"]);
    assert_eq!(format!("{:?}", one.session()), format!("{:?}", two.session()));
}

#[tokio::test]
async fn a_fact_staged_twice_is_written_once() {
    let world = World::new();
    let mut journal = world.answered(calls(&["pay", "search"])).await;
    journal.stage(&[started("1.0"), started("1.0")]).unwrap();
    journal.stage(&[result("1.1", json!(1)), result("1.1", json!(2))]).unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "tool_started 1.0, tool_finished 1.1");
}

#[tokio::test]
async fn a_superseded_run_gets_an_error_and_decides_nothing() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut old = world.answered(calls(&["search"])).await;
    let mut new = world.taken_over("r2").await;
    new.stage(&[result("1.0", json!("new"))]).unwrap();
    new.commit().await.unwrap();
    old.stage(&[result("1.0", json!("old"))]).unwrap();
    assert_eq!(code(old.commit().await), "superseded");
    assert_eq!(world.log().await[2..], ["run_started", "tool_finished 1.0, step_closed"]);
}

#[tokio::test]
async fn a_superseded_run_still_records_results_of_open_calls() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut old = world.answered(calls(&["pay", "search"])).await;
    old.stage(&[started("1.0")]).unwrap();
    old.commit().await.unwrap();
    let mut new = world.taken_over("r2").await;
    new.stage(&[result("1.1", json!("new"))]).unwrap();
    new.commit().await.unwrap();
    old.stage(&[result("1.0", json!("paid")), result("1.1", json!("old"))]).unwrap();
    assert_eq!(code(old.commit().await), "superseded", "the run still stops");
    assert_eq!(world.log().await.last().unwrap(), "tool_finished 1.0");
    assert_eq!(world.events().await.last().unwrap().run, Some("r1".into()));
    let head = world.faults.head(&id()).await.unwrap().unwrap();
    assert_eq!(head.summary.run, Some("r2".into()), "the head belongs to the new owner");

    let version = world.events().await.len() as u64;
    new.catch_up().await.unwrap();
    new.stage(&[]).unwrap();
    let committed = new.commit().await.unwrap();
    assert_eq!(names(&committed.events), "step_closed");
    let late: Vec<_> =
        committed.late.iter().map(|(at, finish)| (*at, finish.call.to_string())).collect();
    assert_eq!(late, [(version, "1.0".to_owned())], "the new run has to show it");
}

/// The old run never recorded its reply, and the reply of the new one has another call with the same id.
#[tokio::test]
async fn a_late_result_is_not_recorded_for_another_call_with_its_id() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut old = world.create().await;
    let mut new = world.taken_over("r2").await;
    new.stage(&[reply(1, calls(&["search", "pay"]))]).unwrap();
    new.commit().await.unwrap();
    let results = [result("1.0", json!("paid")), result("1.1", json!("paid, too"))];
    old.stage(&[reply(1, calls(&["pay", "pay"]))]).unwrap();
    old.stage(&results).unwrap();
    assert_eq!(code(old.commit().await), "superseded");
    let recorded = world.events().await;
    let recorded: Vec<_> = recorded.iter().map(|recorded| recorded.event.clone()).collect();
    assert_eq!(
        recorded.last(),
        Some(&results[1]),
        "only the call that both runs made has a result"
    );
    assert!(!recorded.contains(&results[0]));
}

#[tokio::test]
async fn a_late_result_is_not_recorded_without_the_companion_that_the_call_started() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut old = world.answered(calls(&["search", "search"])).await;
    drop(world.taken_over("r2").await);
    let spawned = result("1.0", json!({"name": "one", "session": "s-sub-1.0"}));
    old.stage(&[child_of("1.0"), spawned, result("1.1", json!("found"))]).unwrap();
    assert_eq!(code(old.commit().await), "superseded");
    assert_eq!(world.log().await[2..], ["run_started", "tool_finished 1.1"]);
}

/// The result of a call with a child comes from the child.
#[tokio::test]
async fn a_late_result_is_not_recorded_for_a_call_whose_child_the_successor_started() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut old = world.answered(calls(&["search", "search"])).await;
    let mut new = world.taken_over("r2").await;
    new.stage(&[child_of("1.0")]).unwrap();
    new.commit().await.unwrap();
    old.stage(&[result("1.0", json!("refused")), result("1.1", json!("found"))]).unwrap();
    assert_eq!(code(old.commit().await), "superseded");
    assert_eq!(world.log().await[2..], ["run_started", "child_started", "tool_finished 1.1"]);
}

#[tokio::test]
async fn a_run_of_a_deleted_session_appends_nothing_to_the_next_one() {
    let world = World::new();
    let mut old = world.answered(calls(&["search"])).await;
    world.faults.delete(&id()).await.unwrap();
    let session = Session::new(id());
    let events = first_events(&session, "r2");
    let mut new = Journal::new(world.journal_config(), agent(), session, "r2".into());
    new.create(new_session(), events).await.unwrap();
    new.stage(&[reply(1, calls(&["search"]))]).unwrap();
    new.commit().await.unwrap();
    // The logs have the same length, and the message is legal in both.
    let (request, message) = ("m".into(), UserMessage::new("go on"));
    queue_message(world.request_context(), &id(), &request, &message, MessageOrigin::default())
        .await
        .unwrap();
    let before = world.log().await;
    old.stage(&[result("1.0", json!("old"))]).unwrap();
    assert_eq!(code(old.commit().await), "history_lost");
    assert_eq!(world.log().await, before);
}

#[tokio::test]
async fn the_old_owner_of_a_session_that_another_run_ended_is_superseded() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut old = world.create().await;
    let mut new = world.taken_over("r2").await;
    new.stage(&[reply(1, text("Done."))]).unwrap();
    new.end_run().unwrap();
    new.commit().await.unwrap();
    assert_eq!(code(old.catch_up().await), "superseded");
    let outputs: Vec<_> =
        world.session().await.runs().filter_map(|run| run.output.clone()).collect();
    assert_eq!(outputs, [json!("Done.").into()]);
}

#[tokio::test]
async fn a_start_is_no_longer_needed_once_the_call_has_its_result() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut old = world.answered(calls(&["pay", "pay"])).await;
    let mut new = world.taken_over("r2").await;
    new.stage(&[started("1.0"), started("1.1")]).unwrap();
    old.stage(&[result("1.0", json!("paid"))]).unwrap();
    assert_eq!(code(old.commit().await), "superseded");
    assert_eq!(names(&new.commit().await.unwrap().events), "tool_started 1.1");
    let Action::RunTools { calls: tasks, .. } = new.next() else { panic!("{:?}", new.next()) };
    assert_eq!(tasks.len(), 1);
}

#[tokio::test]
async fn state_changes_of_a_step_are_shown_if_a_message_follows_in_the_same_append() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search"])).await;
    let message = UserMessage::new("one more thing");
    queue_message(world.request_context(), &id(), &"m1".into(), &message, MessageOrigin::default())
        .await
        .unwrap();
    journal.catch_up().await.unwrap();
    let outcome = ToolOutcome::Success(json!({}).into());
    let state_patch = Patch::between(&json!({}), &json!({"found": 1}));
    let finish = ToolFinish { state_patch, ..ToolFinish::without_run("1.0".into(), outcome) };
    journal.stage(&[finish.into()]).unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "tool_finished 1.0, step_closed, messages_taken");
    let shown = event_chunks(journal.session(), committed.numbered());
    assert!(
        shown.iter().any(|(_, chunk)| matches!(chunk, ChunkKind::StatePatch { .. })),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_commit_shows_earlier_events_of_another_worker_of_the_same_run() {
    let world = World::new();
    let mut first = world.answered(calls(&["search"])).await;
    let mut second = world.journal("r1").await;
    first.stage(&[result("1.0", json!("found"))]).unwrap();
    let closed = first.commit().await.unwrap();
    assert_eq!(names(&closed.events), "tool_finished 1.0, step_closed");
    // The first worker writes its watermark late or never.
    second.catch_up().await.unwrap();
    second.stage(&[reply(2, text("Done."))]).unwrap();
    second.end_run().unwrap();
    let committed = second.commit().await.unwrap();
    assert_eq!(names(&committed.events), "model_replied, step_closed, run_ended");
    let versions: Vec<_> = committed.displayed_events().map(|(version, _)| version).collect();
    let first_version = closed.version - 1;
    assert_eq!(versions, (first_version..=committed.version).collect::<Vec<_>>());
}

/// Another worker of the run has recorded the call's result.
#[tokio::test]
async fn a_child_of_a_call_that_was_answered_meanwhile_is_not_recorded() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search", "search"])).await;
    let mut other = world.journal("r1").await;
    other.append_facts(&[result("1.0", json!({}))]).await.unwrap();
    let committed = journal.append_facts(&[child_of("1.0"), child_of("1.1")]).await.unwrap();
    assert_eq!(names(&committed.events), "child_started");
    let session = world.session().await;
    let started: Vec<_> =
        session.open_children().map(|child| child.call.as_str().to_owned()).collect();
    assert_eq!(started, ["1.1"]);
}

/// Another worker of the run has recorded the call's result.
#[tokio::test]
async fn a_child_of_a_call_that_was_answered_meanwhile_is_not_recorded_as_waiting() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search", "search"])).await;
    journal.append_facts(&[child_of("1.0"), child_of("1.1")]).await.unwrap();
    let mut other = world.journal("r1").await;
    other.append_facts(&[result("1.0", json!({}))]).await.unwrap();
    let waits = |call: &str| Event::ChildWaiting { call: call.into() };
    let committed = journal.append_facts(&[waits("1.0"), waits("1.1")]).await.unwrap();
    assert_eq!(names(&committed.events), "child_waiting");
    assert_eq!(world.log().await.last().unwrap(), "child_waiting");
}

/// A worker that was taken for crashed may hold events without a key while another worker of its
/// run records that it retries the same work item.
#[tokio::test]
async fn a_recorded_retry_of_a_work_item_supersedes_no_worker() {
    let world = World::new();
    let mut journal = world.create().await;
    let by = "after_llm_call".to_owned();
    let patch = Patch::between(&json!(null), &json!({"n": 1}));
    journal.stage(&[Event::StateChanged { patch, by }, reply(1, text("Done."))]).unwrap();
    let mut other = world.journal("r1").await;
    other.append_facts(&[Event::WorkItemRepeated { call: None }]).await.unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(names(&committed.events), "state_changed, model_replied, step_closed");
}

/// A message is queued while the model answers with a call of an unknown tool. The call is refused again after the
/// conflict.
#[tokio::test]
async fn a_call_is_refused_again_after_a_conflict() {
    let world = World::new();
    let mut journal = world.create().await;
    let (request, message) = ("m1".into(), UserMessage::from("by the way"));
    queue_message(world.request_context(), &id(), &request, &message, MessageOrigin::default())
        .await
        .unwrap();
    journal.stage(&[reply(1, calls(&["unknown", "search"]))]).unwrap();
    journal.commit().await.unwrap();
    journal.stage(&[]).unwrap();
    let Action::RunTools { calls, .. } = journal.next() else { panic!("{:?}", journal.next()) };
    assert_eq!(calls.iter().map(|task| task.call.as_str()).collect::<Vec<_>>(), ["1.1"]);
}
