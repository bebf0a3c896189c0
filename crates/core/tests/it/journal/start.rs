//! Tests of creating sessions and starting runs: exactly one of several concurrent attempts
//! succeeds.

use std::collections::BTreeMap;
use std::time::Duration;

use helix_agents_conformance::faults::Fault;
use helix_agents_core::executor::Input;
use helix_agents_core::id::RunId;
use helix_agents_core::session::{
    Journal, RunStatus, Session, StartOutcome, abort_events, execute_events, resume_events,
};
use helix_agents_core::step::Action;
use helix_agents_core::store::{SessionStatus, StateStore};

use crate::support::{
    World, agent, calls, code, first_events, id, new_session, reply, result, start_run, text,
};

#[tokio::test]
async fn creation_start_and_messages_are_one_append() {
    let world = World::new();
    let journal = world.create().await;
    assert_eq!(world.log().await, ["session_created, run_started, user_messages"]);
    assert!(matches!(journal.next(), Action::CallModel { step: 1, .. }));
    let head = world.faults.head(&id()).await.unwrap().unwrap();
    assert!(head.is_leased());
    assert_eq!(head.summary.run, Some("r1".into()));
    assert_eq!(*journal.session().position(), head.position);
    let run = journal.session().current_run().unwrap();
    assert_eq!(run.started, Some(head.created_at), "the time of the store's clock");
}

#[tokio::test]
async fn one_of_two_creators_gets_an_error() {
    let world = World::new();
    world.create().await;
    let session = Session::new(id());
    let mut second = Journal::new(world.journal_config(), agent(), session, "r2".into());
    let events = first_events(second.session(), "r2");
    assert_eq!(code(second.create(new_session(), events).await), "session_exists");
    assert_eq!(second.session().position().version, 0, "the fold is rolled back");
    assert_eq!(&**second.session().agent(), "");
    assert_eq!(world.appends().await.len(), 1);
}

#[tokio::test]
async fn a_creation_whose_reply_is_lost_is_retried() {
    let world = World::new();
    world.faults.inject("session_created", Fault::LoseReply);
    world.create().await;
    assert_eq!(world.appends().await.len(), 1);
}

/// Creates a session and completes its first turn.
async fn complete(world: &World) {
    let mut journal = world.answered(text("Done.")).await;
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
}

fn turn(session: &Session, run: &str) -> Vec<helix_agents_core::event::Event> {
    let input = Input::from("again");
    execute_events(session, &agent(), &start_run(run), &input, &BTreeMap::new(), false).unwrap()
}

#[tokio::test]
async fn a_run_starts_on_a_completed_session() {
    let world = World::new();
    complete(&world).await;
    let mut journal = world.journal("r2").await;
    let events = turn(journal.session(), "r2");
    assert_eq!(journal.start(events).await.unwrap(), StartOutcome::Started);
    assert_eq!(world.log().await.last().unwrap(), "run_started, user_messages");
    assert_eq!(journal.session().turn(), 2);
    let head = world.faults.head(&id()).await.unwrap().unwrap();
    assert_eq!(head.summary.run, Some("r2".into()));
    assert!(head.is_leased());
}

#[tokio::test]
async fn one_of_two_starters_starts_and_the_other_reloads() {
    let world = World::new();
    complete(&world).await;
    let (mut one, mut two) = (world.journal("r2").await, world.journal("r3").await);
    let before = format!("{:?}", two.session());
    let events = turn(one.session(), "r2");
    assert_eq!(one.start(events).await.unwrap(), StartOutcome::Started);
    let events = turn(two.session(), "r3");
    assert_eq!(two.start(events).await.unwrap(), StartOutcome::Changed);
    assert_eq!(format!("{:?}", two.session()), before, "the fold is rolled back");
    assert_eq!(world.session().await.runs().count(), 2);
}

#[tokio::test]
async fn a_start_whose_reply_is_lost_counts_as_started() {
    let world = World::new();
    complete(&world).await;
    world.faults.inject("run_started", Fault::LoseReply);
    let mut journal = world.journal("r2").await;
    let events = turn(journal.session(), "r2");
    assert_eq!(journal.start(events).await.unwrap(), StartOutcome::Started);
    assert_eq!(world.session().await.runs().count(), 2);
}

#[tokio::test]
async fn a_live_run_is_not_taken_over_and_its_lease_expiry_is_returned() {
    let world = World::new();
    world.create().await;
    let mut journal = world.journal("r2").await;
    let after = RunId::from("r1");
    let events =
        resume_events(journal.session(), &agent(), &start_run("r2"), Some(&after), None).unwrap();
    let outcome = journal.start(events).await.unwrap();
    let StartOutcome::Leased { until, now } = outcome else { panic!("{outcome:?}") };
    let left = until.since(now);
    assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
    assert_eq!(journal.session().runs().count(), 1, "the fold is rolled back");
}

#[tokio::test]
async fn a_crashed_run_is_taken_over_where_it_stopped() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    world.answered(calls(&["search"])).await;
    let journal = world.taken_over("r2").await;
    let Action::RunTools { calls: tasks, .. } = journal.next() else {
        panic!("{:?}", journal.next())
    };
    assert_eq!((tasks[0].call.as_str(), tasks[0].attempt), ("1.0", 2));
    let statuses: Vec<_> = journal.session().runs().map(|run| run.status).collect();
    assert_eq!(statuses, [RunStatus::Superseded, RunStatus::Running]);
}

#[tokio::test]
async fn a_session_without_a_live_run_is_aborted_in_one_append() {
    let world = World { lease: Duration::ZERO, ..World::new() };
    world.answered(calls(&["search", "pay"])).await;
    let mut journal = world.journal("r2").await;
    let reason = Some("enough".to_owned());
    let events = abort_events(journal.session(), &start_run("r2"), "q".into(), reason).unwrap();
    journal.stage(&events).unwrap();
    journal.end_run().unwrap();
    assert_eq!(journal.start(Vec::new()).await.unwrap(), StartOutcome::Started);
    assert_eq!(
        world.log().await.last().unwrap(),
        "run_started, abort_requested, tool_finished 1.0, tool_finished 1.1, step_closed, run_ended"
    );
    let head = world.faults.head(&id()).await.unwrap().unwrap();
    assert_eq!(head.summary.status, SessionStatus::Aborted);
    assert_eq!((head.summary.run, head.lease_until), (None, None));
}

#[tokio::test]
async fn a_turn_that_is_complete_leaves_no_run_and_no_lease() {
    let world = World::new();
    complete(&world).await;
    let head = world.faults.head(&id()).await.unwrap().unwrap();
    assert_eq!(head.summary.status, SessionStatus::Completed);
    assert_eq!((head.summary.run, head.lease_until), (None, None));
    let session = world.session().await;
    assert_eq!(session.last_run().unwrap().ended, Some(head.updated_at));
    assert_eq!(session.position(), &head.position);
}

#[tokio::test]
async fn stage_returns_decisions_and_commit_returns_appended_events() {
    let world = World::new();
    let mut journal = world.create().await;
    let decided = journal.stage(&[reply(1, calls(&["search"]))]).unwrap();
    assert_eq!(decided, []);
    let committed = journal.commit().await.unwrap();
    assert_eq!((committed.events.len(), committed.version), (1, 4));
    let decided = journal.stage(&[result("1.0", serde_json::json!({}))]).unwrap();
    assert_eq!(crate::support::names(&decided), "step_closed");
    assert_eq!(journal.acknowledged(), 4, "the event is staged only");
    let committed = journal.commit().await.unwrap();
    assert_eq!(crate::support::names(&committed.events), "tool_finished 1.0, step_closed");
    assert_eq!(journal.acknowledged(), 6);
    let nothing = journal.commit().await.unwrap();
    assert_eq!((nothing.events.len(), nothing.version), (0, 6));
    assert_eq!(world.appends().await.len(), 3);
}

#[tokio::test]
async fn the_end_of_a_run_is_appended_only_on_request() {
    let world = World::new();
    let mut journal = world.answered(text("Done.")).await;
    assert!(matches!(journal.next(), Action::End(_)));
    assert_eq!(journal.commit().await.unwrap().events, []);
    journal.end_run().unwrap();
    journal.end_run().unwrap();
    let committed = journal.commit().await.unwrap();
    assert_eq!(crate::support::names(&committed.events), "run_ended");
    assert_eq!(journal.next(), Action::Idle);
}
