//! Who begins a run and who carries it out need not be the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_core::tool::{EffectClass, Tool};
use helix_agents_testkit::gate::within;
use helix_agents_testkit::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};
use helix_agents_testkit::servers;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use temporalio_client::{
    WorkflowDescribeOptions, WorkflowExecutionStatus, WorkflowGetResultOptions,
};

use crate::deployment::{Deployment, Process, begin, status, until_over};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn agent() -> Agent {
    Agent::builder("teller").system_prompt("You tell.").model("scripted").build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_workers_has_its_runs_carried_out_by_another_one() {
    let here = Deployment::new().await;
    let agents = [agent().erased()];
    let client = here.client(&agents).await;
    let handle = begin(&client, &agents[0]).await;
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    let result = within(handle.result()).await.unwrap();
    assert_eq!(result.status, RunStatus::Completed);
    worker.shut_down().await;
}

/// Both slots could be taken by waits for children, each for half a minute at a time.
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
    let began = Instant::now();
    let handle = worker.begin(&agents[0]).await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    worker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_who_look_at_the_workflow_see_whose_it_is_and_what_became_of_it() {
    let here = Deployment::new().await;
    let agents = [agent().erased()];
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    let handle = worker.begin(&agents[0]).await;
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

/// It died between the log and the server: here, it spoke to a server that nobody knows any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_the_server_never_heard_of_is_handed_to_it_by_a_sweep() {
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
    let handle = begin(&lost.connect().await.unwrap(), &agents[0]).await;
    let replies = [Reply::tool_call("pay", json!({})), Reply::text("done")];
    let worker = here.worker(ScriptedLlm::new(replies), &agents).await;
    until_over(&worker, &handle).await;
    let taken = worker.runtime.sweep().await.unwrap();
    assert!(taken.is_empty(), "the run goes on, no other one takes over");
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(handle.fold().await.unwrap().runs().count(), 1);
    assert_eq!(paid.load(Ordering::Relaxed), 1, "nobody can have called it before");
    worker.shut_down().await;
}

/// As long as workers may come back, a sweep begins nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_workers_are_away_is_left_alone_by_sweeps() {
    let here = Deployment::new().await;
    let agents = [agent().erased()];
    let client = here.client(&agents).await;
    let handle = begin(&client, &agents[0]).await;
    let workflow = here.workflow("teller", "story").await;
    let sweeper = Process::new(
        here.runtime(ScriptedLlm::new([]), &agents)
            .task_queue("another")
            .registry(AgentRegistry::default()),
    )
    .await;
    until_over(&sweeper, &handle).await;
    assert!(sweeper.runtime.sweep().await.unwrap().is_empty());
    assert_eq!(status(&workflow).await, WorkflowExecutionStatus::Running);
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(handle.fold().await.unwrap().runs().count(), 1);
    sweeper.shut_down().await;
    worker.shut_down().await;
}

/// As when somebody removes a database file and begins anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_begins_anew_uses_the_names_of_workflows_that_ended_again() {
    let agents = [agent().erased()];
    let (before, mut here) = (Deployment::new().await, Deployment::new().await);
    here.prefix.clone_from(&before.prefix);
    for deployment in [&before, &here] {
        let worker = deployment.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
        let handle = worker.begin(&agents[0]).await;
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
    begin(&first, &agents[0]).await;
    let options = ExecuteOptions::default().session("story");
    let refused = second.execute(Arc::clone(&agents[0]), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    assert!(refused.message().contains("`prefix`"), "{refused}");
}
