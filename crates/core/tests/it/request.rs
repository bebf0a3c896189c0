//! Tests of requests from outside a run, and of reading a log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helix_agents_conformance::faults::{DELETE, Fault, FaultStore, HEAD};
use helix_agents_core::error::Result;
use helix_agents_core::id::RequestId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    RequestContext, StartRun, StopKind, StopRequest, load, load_events, pass_down,
    queue_message_in_turn, request,
};
use helix_agents_core::step::Action;
use helix_agents_core::store::{SessionStatus, StateStore};
use helix_agents_store_memory::{MemoryOptions, MemoryStore};
use helix_agents_test::Gate;
use serde_json::json;

use crate::support::{NoWait, World, calls, code, id, reply, result, start_run, text};

async fn ask(world: &World, run: Option<&str>, kind: StopKind) -> Result<()> {
    let run = run.map(Into::into);
    request(world.request_context(), &id(), run.as_ref(), kind, None).await.map(drop)
}

#[tokio::test]
async fn a_request_is_in_the_log_and_does_not_change_the_head() {
    let world = World::new();
    world.create().await;
    let before = world.faults.head(&id()).await.unwrap().unwrap();
    ask(&world, None, StopKind::Interrupt).await.unwrap();
    ask(&world, Some("r1"), StopKind::Abort).await.unwrap();
    assert_eq!(world.log().await[1..], ["interrupt_requested", "abort_requested"]);
    assert_eq!(world.events().await[3].run, None, "no run wrote the request");
    let after = world.faults.head(&id()).await.unwrap().unwrap();
    assert_eq!(after.summary, before.summary);
    assert_eq!(after.lease_until, before.lease_until);
}

#[tokio::test]
async fn the_owner_handles_a_request_with_its_next_append() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search"])).await;
    ask(&world, None, StopKind::Interrupt).await.unwrap();
    journal.stage(&[result("1.0", json!({}))]).unwrap();
    journal.commit().await.unwrap();
    assert!(matches!(journal.next(), Action::End(_)));
}

#[tokio::test]
async fn a_request_to_a_missing_run_is_refused() {
    let world = World::new();
    assert_eq!(code(ask(&world, None, StopKind::Abort).await), "session_not_found");
    let mut journal = world.create().await;
    let other = ask(&world, Some("r9"), StopKind::Interrupt).await;
    assert_eq!(code(other), "nothing_to_stop");
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    for kind in [StopKind::Interrupt, StopKind::Abort] {
        assert_eq!(code(ask(&world, None, kind).await), "nothing_to_stop");
        assert_eq!(code(ask(&world, Some("r1"), kind).await), "nothing_to_stop");
    }
    assert_eq!(world.session().await.status(), SessionStatus::Completed);
}

/// The process that passes a request down may be slow. By then the request may have been handled or
/// cleared.
#[tokio::test]
async fn a_request_that_is_passed_down_again_is_handled_once() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    let mut journal = world.create().await;
    let interrupt = StopRequest { id: "q".into(), reason: None };
    let ask = async || {
        pass_down(world.request_context(), &[id()], StopKind::Interrupt, &interrupt).await;
        world.session().await.interrupt_request().is_some()
    };
    assert!(ask().await);
    journal.catch_up().await.unwrap();
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    assert_eq!(world.session().await.status(), SessionStatus::Interrupted);
    world.taken_over("r2").await;
    assert!(!ask().await, "the request was handled before");

    let world = World { lease: Duration::ZERO, ..World::new() };
    world.create().await;
    let cleared = StartRun { clears: Some("q".into()), ..start_run("r2") };
    world.taken_over_with(cleared).await;
    pass_down(world.request_context(), &[id()], StopKind::Interrupt, &interrupt).await;
    assert!(
        world.session().await.interrupt_request().is_none(),
        "the request was cleared before it arrived"
    );
}

#[tokio::test]
async fn a_log_is_read_back_page_by_page() {
    let world = World::new();
    let mut journal = world.create().await;
    for step in 1..=300 {
        journal.stage(&[reply(step, more_text())]).unwrap();
        journal.commit().await.unwrap();
        if step % 40 == 0 {
            // The step limit applies to a turn.
            journal.stage(&[next_message()]).unwrap();
            journal.commit().await.unwrap();
        }
    }
    let session = load(&world.faults, &id()).await.unwrap();
    assert_eq!(session.last_step(), 300);
    assert_eq!(format!("{session:?}"), format!("{:?}", journal.session()));
    let events = load_events(&world.faults, &id(), 0).await.unwrap();
    assert_eq!(events.len() as u64, session.position().version);
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq));
    let tail = load_events(&world.faults, &id(), events.len() as u64 - 2).await.unwrap();
    assert_eq!(tail, events[events.len() - 2..]);
}

fn more_text() -> helix_agents_core::step::StepResult {
    helix_agents_core::step::StepResult::Text {
        content: "on".to_owned(),
        thinking: None,
        should_stop: false,
        stop_reason: None,
    }
}

fn next_message() -> helix_agents_core::event::Event {
    let messages = vec![helix_agents_core::message::UserMessage::new("on")];
    helix_agents_core::event::Event::UserMessages { messages }
}

#[tokio::test]
async fn a_missing_session_cannot_be_read() {
    let world = World::new();
    assert_eq!(code(load(&world.faults, &id()).await), "session_not_found");
    assert_eq!(code(load_events(&world.faults, &id(), 0).await), "session_not_found");
}

#[tokio::test]
async fn a_request_whose_reply_is_lost_is_in_the_log_once() {
    let world = World::new();
    let _journal = world.create().await;
    world.faults.inject("interrupt_requested", helix_agents_conformance::faults::Fault::LoseReply);
    let before = load(&world.faults, &id()).await.unwrap().position().version;
    let kind = StopKind::Interrupt;
    let store = world.retrying_store();
    let request_context = RequestContext { store: &store, ..world.request_context() };
    request(request_context, &id(), None, kind, None).await.unwrap();
    let after = load(&world.faults, &id()).await.unwrap();
    assert_eq!(after.position().version, before + 1);
    assert!(after.interrupt_request().is_some());
}

/// The reply to a deletion is lost. Before the deletion is repeated, another session is created with the id.
#[tokio::test]
async fn a_repeated_deletion_does_not_delete_the_next_session() {
    let mut world = World::new();
    let memory =
        MemoryStore::with_clock(MemoryOptions::default(), Arc::<NoWait>::clone(&world.clock));
    world.faults = FaultStore::new(Arc::new(memory));
    world.create().await;
    let gate = Gate::new();
    world.faults.inject(DELETE, Fault::LoseReply);
    // The first head is that of the deleted session.
    world.faults.inject(HEAD, Fault::HoldAfter(Gate::opened()));
    world.faults.inject(HEAD, Fault::HoldBefore(gate.clone()));
    let store = world.retrying_store();
    let session = id();
    let deleted = store.delete(&session);
    let created = async {
        gate.reached().await;
        world.clock.now_ms.store(1, Ordering::Relaxed);
        world.create().await;
        gate.open();
    };
    let (deleted, ()) = tokio::join!(deleted, created);
    assert!(deleted.unwrap(), "the first session existed");
    assert!(world.faults.head(&session).await.unwrap().is_some());
}

/// A deletion whose reply was lost is not repeated in vain.
#[tokio::test]
async fn a_deletion_whose_reply_is_lost_reports_that_the_session_existed() {
    let world = World::new();
    world.create().await;
    world.faults.inject(DELETE, Fault::LoseReply);
    assert!(world.retrying_store().delete(&id()).await.unwrap());
    assert!(!world.retrying_store().delete(&id()).await.unwrap());
}

/// A message for a turn that has ended meanwhile has to start another turn.
#[tokio::test]
async fn a_message_for_a_turn_is_not_queued_after_its_end() {
    let world = World::new();
    let mut journal = world.create().await;
    let queue = async |request: &str| {
        let (request, message) = (RequestId::from(request), UserMessage::from("by the way"));
        queue_message_in_turn(world.request_context(), &id(), &request, &message).await.unwrap()
    };
    assert!(queue("m1").await);
    journal.catch_up().await.unwrap();
    journal.stage(&[]).unwrap();
    journal.commit().await.unwrap();
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    assert!(!queue("m2").await);
    assert!(queue("m1").await, "the session has received it");
    let queued = world.log().await.into_iter().filter(|line| line.contains("message_queued"));
    assert_eq!(queued.count(), 1);
}
