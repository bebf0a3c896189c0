//! Manual operations on workflows in Temporal and their effect on runs.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{Agent, AgentBuilder, AnyAgent};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ResumeOptions, RunHandle};
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::StateStore as _;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use helix_agents_testkit::servers;
use serde_json::json;
use temporalio_client::WorkflowExecutionStatus;
use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::workflowservice::v1::ResetWorkflowExecutionRequest;

use crate::deployment::{Deployment, Process, start, status};

/// A run that is blocked in its model call, with its worker.
struct Story {
    here: Deployment,
    agents: [AnyAgent; 1],
    gate: Gate,
    worker: Process,
    handle: RunHandle,
}

fn agent() -> AgentBuilder {
    Agent::builder("teller").system_prompt("You tell.").model("scripted")
}

async fn in_the_model_call() -> Story {
    let here = Deployment::new().await;
    let agents = [agent().build().unwrap().erased()];
    let gate = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("done").at_gate(&gate)]);
    let worker = here.worker(llm, &agents).await;
    let handle = worker.start(&agents[0]).await;
    within(gate.reached()).await;
    Story { here, agents, gate, worker, handle }
}

impl Story {
    /// Checks that the handle reports the cancellation, and that a sweep starts another run.
    async fn check_and_take_over(self) {
        let error = within(self.handle.result()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Cancelled);
        assert!(error.message().contains("in Temporal"), "{error}");
        self.gate.open();
        let taken = within(async {
            loop {
                let taken = self.worker.runtime.sweep().await.unwrap();
                if !taken.is_empty() {
                    return taken;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        assert_eq!(taken.len(), 1);
        assert_eq!(within(taken[0].result()).await.unwrap().status, RunStatus::Completed);
        assert_eq!(taken[0].load_session().await.unwrap().runs().count(), 2);
        let second = self.here.workflow("teller", "story__resume-1").await;
        within(second.get_result(Default::default())).await.unwrap();
        assert_eq!(status(&second).await, WorkflowExecutionStatus::Completed);
        self.worker.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_run_is_reported_and_taken_over() {
    let story = in_the_model_call().await;
    let workflow = story.here.workflow("teller", "story").await;
    workflow.terminate(Default::default()).await.unwrap();
    story.check_and_take_over().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_is_released_reported_and_taken_over() {
    let story = in_the_model_call().await;
    let workflow = story.here.workflow("teller", "story").await;
    workflow.cancel(Default::default()).await.unwrap();
    within(workflow.get_result(Default::default())).await.unwrap_err();
    assert_eq!(status(&workflow).await, WorkflowExecutionStatus::Canceled);
    story.check_and_take_over().await;
}

/// An explicit resume depends only on the lease. The workflow of the superseded run is terminated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workflow_of_a_superseded_run_is_terminated() {
    let Story { here, agents, gate, worker, handle } = in_the_model_call().await;
    let session = handle.session().clone();
    worker.kill().await;
    gate.open();
    let client = here.client(&agents).await;
    let options = ResumeOptions::default().wait(Duration::from_secs(60));
    let resumed = within(client.resume(Arc::clone(&agents[0]), &session, options)).await.unwrap();
    let workflow = here.workflow("teller", "story").await;
    assert_eq!(status(&workflow).await, WorkflowExecutionStatus::Terminated);
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    assert_eq!(within(resumed.result()).await.unwrap().status, RunStatus::Completed);
    worker.shut_down().await;
}

/// The workflow is reset to its first task while it is blocked in a tool. Each work item is executed again, but
/// recorded effects are not repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_workflow_does_not_repeat_recorded_effects() {
    let here = Deployment::new().await;
    let gate = Gate::new();
    let agents = [agent().tool(held(&gate)).build().unwrap().erased()];
    let llm = ScriptedLlm::new([Reply::tool_call("wait", json!({})), Reply::text("done")]);
    let worker = here.worker(llm.clone(), &agents).await;
    let handle = worker.start(&agents[0]).await;
    within(gate.reached()).await;
    let workflow = here.workflow("teller", "story").await;
    let request = ResetWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_execution: Some(WorkflowExecution {
            workflow_id: workflow.info().workflow_id.clone(),
            ..WorkflowExecution::default()
        }),
        reason: "a test".to_owned(),
        workflow_task_finish_event_id: 4,
        request_id: servers::unique(),
        ..ResetWorkflowExecutionRequest::default()
    };
    let mut service = workflow.client().connection().workflow_service();
    service.reset_workflow_execution(request.into_request()).await.unwrap();
    within(gate.reached_by(2)).await;
    gate.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(llm.calls(), 2, "one for each step");
    let fold = handle.load_session().await.unwrap();
    assert_eq!((fold.runs().count(), fold.last_step()), (1, 2));
    worker.shut_down().await;
}

/// Returns a tool that waits at the gate.
fn held(gate: &Gate) -> Tool {
    let gate = gate.clone();
    Tool::function("wait", "Stands still.", move |_: serde_json::Value, _: ToolContext| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>("waited")
        }
    })
}

/// The workflow of a run may close a moment after the run has ended. A session that is deleted and created again at once has
/// the same workflow id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_created_again_waits_for_the_old_workflow_to_close() {
    let Story { here, agents, gate, worker, handle } = in_the_model_call().await;
    // Without a worker, the old workflow is open until it is terminated.
    worker.kill().await;
    gate.open();
    assert!(here.store.delete(handle.session()).await.unwrap());
    let client = here.client(&agents).await;
    let second = {
        let mut starting = pin!(start(&client, &agents[0]));
        tokio::select! {
            biased;
            _ = &mut starting => panic!("the run started while the old workflow was open"),
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
        let workflow = here.workflow("teller", "story").await;
        workflow.terminate(Default::default()).await.unwrap();
        within(starting).await
    };
    assert_ne!(second.run(), handle.run());
    let worker = here.worker(ScriptedLlm::new([Reply::text("done")]), &agents).await;
    assert_eq!(within(second.result()).await.unwrap().status, RunStatus::Completed);
    worker.shut_down().await;
}
