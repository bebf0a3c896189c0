//! Runs that are started and executed by different processes.

use helix_agents_runtime::RuntimeBuilder as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_core::tool::{EffectClass, Tool};
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm, within};
use helix_agents_testkit::servers;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use temporalio_client::{
    WorkflowDescribeOptions, WorkflowExecutionStatus, WorkflowGetResultOptions,
};

use crate::deployment::{Deployment, Process, start, status, until_lease_expired};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn agent() -> Agent {
    Agent::builder("teller").system_prompt("You tell.").model("scripted").build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_executes_the_runs_of_a_process_without_workers() {
    let here = Deployment::new().await;
    let agents = [agent().erased()];
    let client = here.client(&agents).await;
    let handle = start(&client, &agents[0]).await;
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    let result = within(handle.result()).await.unwrap();
    assert_eq!(result.status, RunStatus::Completed);
    worker.shut_down().await;
}

/// Both slots could be occupied by waits for children of 30 seconds each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parents_that_wait_leave_slots_to_their_children() {
    let here = Deployment::new().await;
    let helper = Agent::builder("helper")
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .output_schema(json!({"type": "object"}))
        .build()
        .unwrap();
    let teller = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let teller = teller.sub_agent(&helper).build().unwrap();
    let agents = [teller.erased(), helper.erased()];
    let asks = ["moon", "sun"].map(|what| ("subagent__helper", json!({"message": what})));
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([Reply::calls(asks), Reply::text("done")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!({}))]));
    let worker = Process::with_slots(here.runtime(llm, &agents), 2).await;
    let start = Instant::now();
    let handle = worker.start(&agents[0]).await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    worker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workflow_shows_its_session_and_its_outcome() {
    let here = Deployment::new().await;
    let agents = [agent().erased()];
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    let handle = worker.start(&agents[0]).await;
    within(handle.result()).await.unwrap();
    let workflow = here.workflow("teller", "story").await;
    let output: serde_json::Value = within(workflow.get_result(Default::default()))
        .await
        .unwrap()
        .to_value(&Default::default());
    assert_eq!(output["status"], "completed");
    let seen = workflow.describe(WorkflowDescribeOptions::default()).await.unwrap();
    assert_eq!(seen.status(), WorkflowExecutionStatus::Completed);
    assert_eq!(seen.workflow_type(), "helix-agent-run");
    assert_eq!(seen.static_summary(), Some("teller in session story, run 1"));
    assert_eq!(seen.memo().get::<String>("session").unwrap().as_deref(), Some("story"));
    worker.shut_down().await;
}

/// Simulates a crash between the append and the start of the workflow, with a workflow that no worker knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_starts_the_workflow_of_a_run_without_one() {
    let here = Deployment::new().await;
    let paid = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&paid);
    let pay = Tool::function("pay", "Pays.", move |_: Nothing, _| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok("paid") }
    });
    let teller = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let teller = teller.tool(pay.effect(EffectClass::AtMostOnce)).build().unwrap();
    let agents = [teller.erased()];
    let lost = here
        .runtime(ScriptedLlm::new([]), &agents)
        .prefix(servers::unique())
        .task_queue(servers::unique());
    let handle = start(&lost.connect().await.unwrap(), &agents[0]).await;
    let replies = [Reply::tool_call("pay", json!({})), Reply::text("done")];
    let worker = here.worker(ScriptedLlm::new(replies), &agents).await;
    until_lease_expired(&worker, &handle).await;
    let taken = worker.runtime.sweep().await.unwrap();
    assert!(taken.is_empty(), "the run continues, no other run takes over");
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(handle.load_session().await.unwrap().runs().count(), 1);
    assert_eq!(paid.load(Ordering::Relaxed), 1, "no earlier worker can have called it");
    worker.shut_down().await;
}

/// A sweep starts nothing while workers may return.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweeps_skip_a_run_whose_workers_are_unavailable() {
    let here = Deployment::new().await;
    let agents = [agent().erased()];
    let client = here.client(&agents).await;
    let handle = start(&client, &agents[0]).await;
    let workflow = here.workflow("teller", "story").await;
    let sweeper = Process::new(
        here.runtime(ScriptedLlm::new([]), &agents)
            .task_queue("another")
            .registry(AgentRegistry::default()),
    )
    .await;
    until_lease_expired(&sweeper, &handle).await;
    assert!(sweeper.runtime.sweep().await.unwrap().is_empty());
    assert_eq!(status(&workflow).await, WorkflowExecutionStatus::Running);
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(handle.load_session().await.unwrap().runs().count(), 1);
    sweeper.shut_down().await;
    worker.shut_down().await;
}

/// For example after a database file was deleted and created again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_store_reuses_the_ids_of_closed_workflows() {
    let agents = [agent().erased()];
    let (before, mut here) = (Deployment::new().await, Deployment::new().await);
    here.prefix.clone_from(&before.prefix);
    for deployment in [&before, &here] {
        let worker = deployment.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
        let handle = worker.start(&agents[0]).await;
        assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
        let workflow = deployment.workflow("teller", "story").await;
        within(workflow.get_result(WorkflowGetResultOptions::default())).await.unwrap();
        worker.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_do_not_share_a_workflow() {
    let agents = [agent().erased()];
    let (other, mut here) = (Deployment::new().await, Deployment::new().await);
    here.prefix.clone_from(&other.prefix);
    let (first, second) = (other.client(&agents).await, here.client(&agents).await);
    start(&first, &agents[0]).await;
    let options = ExecuteOptions::default().session("story");
    let refused = second.execute(Arc::clone(&agents[0]), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    assert!(refused.message().contains("`prefix`"), "{refused}");
}
