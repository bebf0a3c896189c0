//! The size and the contents of workflow histories.
//!
//! `HELIX_RECORD_HISTORIES=1` records the histories of some runs in `histories/v1`, which unit tests of the workflow
//! replay. They are kept for as long as runs of an older version may be in progress: a change that breaks a recorded
//! history breaks these runs.

use std::path::Path;
use std::sync::Arc;

use helix_agents_core::agent::{Agent, AgentBuilder, AnyAgent, CompanionMode};
use helix_agents_core::executor::{AgentExecutor as _, RunHandle};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::RunStatus;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use temporalio_client::{
    Client, UntypedWorkflow, WorkflowDescribeOptions, WorkflowExecutionInfo,
    WorkflowFetchHistoryOptions, WorkflowGetResultOptions, WorkflowHandle,
};

use crate::deployment::{Deployment, Process};

const RECORD: &str = "HELIX_RECORD_HISTORIES";

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Report {
    answer: String,
}

fn teller() -> AgentBuilder {
    Agent::builder("teller").system_prompt("You tell.").model("scripted")
}

fn helper(name: &str) -> Agent<Report> {
    let helper = Agent::builder(name).description("Helps.").system_prompt("You help.");
    helper.model("scripted").output::<Report>().build().unwrap()
}

fn shout() -> Tool {
    Tool::function("shout", "Says a word loudly.", |input: Word, _: ToolContext| async move {
        Ok::<_, ToolError>(input.word.to_uppercase())
    })
}

fn shouts() -> Reply {
    Reply::tool_call("shout", json!({ "word": "x" }))
}

/// An ended run and its workflow.
struct EndedRun {
    handle: RunHandle,
    workflow: WorkflowHandle<Client, UntypedWorkflow>,
}

/// Executes a run of an agent, with this maximum number of work items per history.
async fn execute(agent: &AnyAgent, llm: impl LlmAdapter, parts: u32) -> EndedRun {
    let here = Deployment::new().await;
    let builder = here.runtime(llm, &[Arc::clone(agent)]).work_items_per_history(parts);
    let process = Process::new(builder.identity("recorded")).await;
    let handle = process.start(agent).await;
    within(handle.result()).await.unwrap();
    let workflow = here.workflow("teller", "story").await;
    within(workflow.get_result(WorkflowGetResultOptions::default())).await.unwrap();
    // A handle of another runtime remains valid after the process ended.
    let handle = here.client(&[Arc::clone(agent)]).await.handle(handle.session()).await.unwrap();
    process.shut_down().await;
    EndedRun { handle, workflow }
}

impl EndedRun {
    async fn status(&self) -> RunStatus {
        self.handle.load_session().await.unwrap().last_run().unwrap().status
    }

    /// Returns the size in bytes and the number of events of the last history.
    async fn size(&self) -> (i64, usize) {
        let seen = self.workflow.describe(WorkflowDescribeOptions::default()).await.unwrap();
        let length = seen.history_length();
        (seen.raw().workflow_execution_info.as_ref().unwrap().history_size_bytes, length)
    }

    /// Returns the number of work items in all histories.
    async fn parts(&self) -> u64 {
        let output = self.workflow.get_result(WorkflowGetResultOptions::default()).await.unwrap();
        let output: serde_json::Value =
            serde_json::from_slice(&output.payloads.first().unwrap().data).unwrap();
        output["parts"].as_u64().unwrap()
    }

    async fn record(&self, name: &str) {
        if std::env::var_os(RECORD).is_none() {
            return;
        }
        write(name, &self.workflow).await;
    }

    /// Records the first history of the run.
    async fn record_first(&self, name: &str) {
        if std::env::var_os(RECORD).is_none() {
            return;
        }
        let info = WorkflowExecutionInfo::builder()
            .namespace("default")
            .workflow_id(self.workflow.info().workflow_id.clone())
            .run_id(self.first_run().await)
            .build();
        write(name, &WorkflowHandle::new(self.workflow.client().clone(), info)).await;
    }

    async fn first_run(&self) -> String {
        let seen = self.workflow.describe(WorkflowDescribeOptions::default()).await.unwrap();
        seen.raw().workflow_execution_info.as_ref().unwrap().first_run_id.clone()
    }
}

async fn write(name: &str, workflow: &WorkflowHandle<Client, UntypedWorkflow>) {
    let history = workflow.fetch_history(WorkflowFetchHistoryOptions::default());
    let mut json = history.to_json().await.unwrap();
    json.push(b'\n');
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/v1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name).with_extension("json"), json).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_steps_are_a_small_history() {
    let agent = teller().tool(shout()).max_steps(200).build().unwrap();
    let script = (0..99).map(|_| shouts()).chain([Reply::text("done")]);
    let ended = execute(&agent.erased(), ScriptedLlm::new(script), 1_000).await;
    assert_eq!(ended.status().await, RunStatus::Completed);
    let (bytes, events) = ended.size().await;
    assert!(bytes < 1_000_000, "{bytes} bytes");
    assert!(events > 900, "{events} events: expected a single history");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_run_continues_in_new_histories() {
    let agent = teller().tool(shout()).max_steps(40).build().unwrap();
    let script = (0..20).map(|_| shouts()).chain([Reply::text("done")]);
    let ended = execute(&agent.erased(), ScriptedLlm::new(script), 10).await;
    assert_eq!(ended.status().await, RunStatus::Completed);
    let fold = ended.handle.load_session().await.unwrap();
    assert_eq!((fold.runs().count(), fold.last_step()), (1, 21));
    let (parts, (_, events)) = (ended.parts().await, ended.size().await);
    assert!(parts > 40, "{parts} parts");
    assert!(events < 120, "{events} events: expected several histories");
    ended.record("continued").await;
    ended.record_first("continues").await;
}

/// The companion is blocked in its model call while its parent continues in a new history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_companion_outlives_the_history_in_which_it_started() {
    let gate = Gate::new();
    let spawn = json!({ "agent": "critic", "message": "judge this", "name": "rex" });
    let spawn = Reply::tool_call("companion__spawnAgent", spawn);
    let wait = Reply::tool_call("companion__waitForResult", json!({ "name": "rex" }));
    let opens = {
        let gate = gate.clone();
        Tool::function("open", "Opens the gate.", move |_: Word, _: ToolContext| {
            gate.open();
            async { Ok::<_, ToolError>("open") }
        })
    };
    let agent = teller()
        .tool(shout())
        .tool(opens)
        .companion(&helper("critic"), CompanionMode::NonBlocking)
        .build()
        .unwrap();
    let script = [spawn].into_iter().chain((0..8).map(|_| shouts())).chain([
        Reply::tool_call("open", json!({ "word": "x" })),
        wait,
        Reply::text("done"),
    ]);
    let critic = [Reply::finish(json!({ "answer": "fine" })).at_gate(&gate)];
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new(script))
        .agent("critic", ScriptedLlm::new(critic));
    let ended = execute(&agent.erased(), llm, 10).await;
    assert_eq!(ended.status().await, RunStatus::Completed);
    let transcript = format!("{:?}", ended.handle.load_session().await.unwrap().transcript());
    assert!(transcript.contains("fine"), "{transcript}");
    let (_, events) = ended.size().await;
    assert!(events < 120, "{events} events: expected several histories");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_run_replays() {
    let agent = teller().build().unwrap();
    let ended = execute(&agent.erased(), ScriptedLlm::new([Reply::text("done")]), 1_000).await;
    assert_eq!(ended.status().await, RunStatus::Completed);
    ended.record("plain").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_tools_replay() {
    let agent = teller().tool(shout()).tool_concurrency(2).build().unwrap();
    let word = json!({ "word": "x" });
    let calls = Reply::calls((0..5).map(|_| ("shout", word.clone())));
    let ended =
        execute(&agent.erased(), ScriptedLlm::new([calls, Reply::text("done")]), 1_000).await;
    assert_eq!(ended.status().await, RunStatus::Completed);
    ended.record("parallel").await;
}

/// A sub-agent is a child workflow that is not ended with its parent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_agent_is_a_child_workflow() {
    let agent = teller().tool(shout()).sub_agent(&helper("helper")).build().unwrap();
    let asks = [
        ("subagent__helper", json!({ "message": "help" })),
        ("shout", json!({ "word": "x" })),
        ("subagent__helper", json!({ "message": "more" })),
    ];
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([Reply::calls(asks), Reply::text("done")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!({ "answer": "yes" }))]));
    let ended = execute(&agent.erased(), llm, 1_000).await;
    assert_eq!(ended.status().await, RunStatus::Completed);
    let history = ended.workflow.fetch_history(WorkflowFetchHistoryOptions::default());
    let events = history.into_events().await.unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event.event_type().as_str_name()).collect();
    let children = kinds.iter().filter(|kind| kind.contains("CHILD_WORKFLOW_EXECUTION_STARTED"));
    assert_eq!(children.count(), 2, "{kinds:?}");
    ended.record("children").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workflow_of_a_suspended_run_has_ended() {
    let agent = teller().tool(shout().requires_approval()).build().unwrap();
    let script = ScriptedLlm::new([shouts(), Reply::text("done")]);
    let ended = execute(&agent.erased(), script, 1_000).await;
    assert_eq!(ended.status().await, RunStatus::SuspendedClientTool);
    ended.record("suspended").await;
}
