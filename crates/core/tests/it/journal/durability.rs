//! Tests of durability: facts are appended as they happen, or step by step.

use helix_agents_core::session::Durability;
use serde_json::json;

use crate::support::{World, calls, names, reply, result, started, text};

fn per_step() -> World {
    World { durability: Durability::PerStep, ..World::new() }
}

#[tokio::test]
async fn per_effect_appends_each_fact_immediately() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search", "search"])).await;
    for call in ["1.1", "1.0"] {
        journal.stage(&[result(call, json!({}))]).unwrap();
        journal.commit().await.unwrap();
    }
    assert_eq!(
        world.log().await[1..],
        ["model_replied", "tool_finished 1.1", "tool_finished 1.0, step_closed"]
    );
}

#[tokio::test]
async fn per_step_holds_back_until_the_step_closes() {
    let world = per_step();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, calls(&["search", "search"]))]).unwrap();
    let held = journal.commit().await.unwrap();
    assert_eq!((held.events.len(), held.version), (0, 3));
    journal.stage(&[result("1.1", json!({}))]).unwrap();
    journal.commit().await.unwrap();
    assert_eq!(world.appends().await.len(), 1, "nothing is appended before the step closes");
    assert_eq!(journal.acknowledged(), 3);
    journal.stage(&[result("1.0", json!({}))]).unwrap();
    let committed = journal.commit().await.unwrap();
    let all = "model_replied, tool_finished 1.1, tool_finished 1.0, step_closed";
    assert_eq!(names(&committed.events), all);
    assert_eq!(world.log().await[1..], [all]);
}

#[tokio::test]
async fn per_step_writes_a_start_before_the_call_runs() {
    let world = per_step();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, calls(&["pay"]))]).unwrap();
    journal.commit().await.unwrap();
    journal.stage(&[started("1.0")]).unwrap();
    journal.commit().await.unwrap();
    assert_eq!(world.log().await[1..], ["model_replied, tool_started 1.0"]);
}

#[tokio::test]
async fn per_step_writes_the_end() {
    let world = per_step();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    assert_eq!(world.log().await[1..], ["model_replied, step_closed, run_ended"]);
}

#[tokio::test]
async fn held_back_events_can_be_flushed() {
    let world = per_step();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, calls(&["search"]))]).unwrap();
    journal.commit().await.unwrap();
    assert_eq!(names(&journal.flush().await.unwrap().events), "model_replied");
    assert_eq!(world.log().await[1..], ["model_replied"]);
}

#[tokio::test]
async fn a_crash_loses_only_held_back_events() {
    let world = per_step();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, calls(&["search"]))]).unwrap();
    journal.commit().await.unwrap();
    drop(journal);
    assert_eq!(world.session().await.last_step(), 0, "the step is repeated");
}

#[tokio::test]
async fn held_back_events_survive_a_concurrent_request() {
    let world = per_step();
    let mut journal = world.create().await;
    journal.stage(&[reply(1, calls(&["search"]))]).unwrap();
    journal.commit().await.unwrap();
    let kind = helix_agents_core::session::StopKind::Interrupt;
    let id = crate::support::id();
    let request_context = world.request_context();
    helix_agents_core::session::request(request_context, &id, None, kind, None).await.unwrap();
    journal.catch_up().await.unwrap();
    journal.stage(&[result("1.0", json!({}))]).unwrap();
    journal.commit().await.unwrap();
    assert_eq!(
        world.log().await[1..],
        ["interrupt_requested", "model_replied, tool_finished 1.0, step_closed"]
    );
}

/// A run with hooks records the results that it decides before the hooks receive them.
#[tokio::test]
async fn decided_results_are_appended_without_facts() {
    let world = World::new();
    let mut journal = world.create().await;
    journal.append_facts(&[reply(1, calls(&["unknown"]))]).await.unwrap();
    let decided = journal.stage_results().unwrap();
    assert_eq!(names(&decided), "tool_finished 1.0");
    let committed = journal.append_facts(&[]).await.unwrap();
    assert_eq!(committed.events, decided);
    assert_eq!(journal.session().position(), world.session().await.position());
}
