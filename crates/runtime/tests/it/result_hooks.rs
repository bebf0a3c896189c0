//! Hook calls for results when an event is recorded before a work item can append.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::Agent;
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, ToolCallView};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime::{Runtime, Settings};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use helix_agents_testkit::trees::Redelivery;
use serde_json::{Value, json};

use crate::by_hand::helps;
use crate::in_work_items::in_work_items;

/// Hooks that record the calls with results.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordingHooks(pub(crate) Arc<Mutex<Vec<String>>>);

#[async_trait]
impl AgentHooks for RecordingHooks {
    async fn after_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.0.lock().unwrap().push(format!("{} {}", call.call, call.tool));
        Ok(())
    }
}

fn tool(name: &str) -> Tool {
    let run = |input: Value, _: ToolContext| async { Ok::<_, ToolError>(input) };
    Tool::dynamic(name, "Does it.", json!({"type": "object"}), run)
}

fn runtime(store: FaultStore, llm: impl LlmAdapter) -> Runtime {
    let settings = Settings {
        store: Some(Arc::new(store)),
        streams: Some(Arc::new(MemoryStore::new())),
        llm: Some(Arc::new(llm)),
        ..Settings::default()
    };
    in_work_items(settings, Redelivery::Never)
}

/// The work item that is about to suspend the run has called the hooks, and then finds that the run continues.
#[tokio::test(start_paused = true)]
async fn hooks_are_called_once_although_an_approval_arrives_before_the_run_is_suspended() {
    let (hooks, ending) = (RecordingHooks::default(), Gate::new());
    let store = FaultStore::new(Arc::new(MemoryStore::new()));
    let agent = Agent::builder("clerk").system_prompt("You sign.").model("scripted");
    let agent = agent.tool(tool("search").requires_approval());
    let agent = agent.tool(tool("sign").requires_approval());
    let agent = agent.hooks(hooks.clone()).build().unwrap().erased();
    let calls = ["search", "sign", "missing"].map(|name| (name, json!({})));
    let llm = ScriptedLlm::new([Reply::calls(calls), Reply::text("So.")]);
    let runtime = runtime(store.clone(), llm);
    let (session, options) = (SessionId::from("s"), ExecuteOptions::default().session("s"));
    let handle = runtime.execute(Arc::clone(&agent), "go".into(), options).await.unwrap();
    assert!(within(handle.result()).await.unwrap().status.is_suspended());

    store.inject("run_ended", Fault::HoldBefore(ending.clone()));
    runtime.submit_tool_result(&session, Submission::approve("1.0")).await.unwrap();
    let handle = runtime.resume(agent, &session, ResumeOptions::default()).await.unwrap();
    ending.reached().await;
    assert_eq!(*hooks.0.lock().unwrap(), ["1.2 missing", "1.0 search"]);
    runtime.submit_tool_result(&session, Submission::approve("1.1")).await.unwrap();
    ending.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*hooks.0.lock().unwrap(), ["1.2 missing", "1.0 search", "1.1 sign"]);
}

/// The work item that refuses the call is not the one that continues after the child.
#[tokio::test(start_paused = true)]
async fn hooks_are_called_for_a_call_that_is_refused_next_to_a_child() {
    let hooks = RecordingHooks::default();
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    let boss = boss.sub_agent(&helps()).hooks(hooks.clone()).build().unwrap();
    let calls = [("missing", json!({})), ("subagent__helper", json!({"message": "help"}))];
    let llm = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([Reply::calls(calls), Reply::text("So.")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!(true))]));
    let runtime = runtime(FaultStore::new(Arc::new(MemoryStore::new())), llm);
    let options = ExecuteOptions::default();
    let handle = runtime.execute(boss.erased(), "go".into(), options).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*hooks.0.lock().unwrap(), ["1.0 missing"]);
}

/// The work item that starts the next child finds the abort, and is the last one of the run.
#[tokio::test(start_paused = true)]
async fn hooks_are_called_for_a_result_although_the_next_child_is_aborted_before_its_start() {
    let (hooks, settled) = (RecordingHooks::default(), Gate::new());
    let store = FaultStore::new(Arc::new(MemoryStore::new()));
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    let boss = boss.tool_concurrency(1).sub_agent(&helps()).tool(tool("search"));
    let boss = boss.hooks(hooks.clone()).build().unwrap();
    let help = || ("subagent__helper", json!({"message": "help"}));
    let calls = [help(), help(), ("search", json!({}))];
    let llm = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([Reply::calls(calls)]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!(true))]));
    let runtime = runtime(store.clone(), llm);
    // The usage of the first child is recorded with its result.
    store.inject(r#""child":{"tokens""#, Fault::HoldAfter(settled.clone()));
    let (session, options) = (SessionId::from("s"), ExecuteOptions::default().session("s"));
    let handle = runtime.execute(boss.erased(), "go".into(), options).await.unwrap();
    within(settled.reached()).await;
    assert_eq!(*hooks.0.lock().unwrap(), [] as [&str; 0], "the second child has not started");
    runtime.abort(&session, None).await.unwrap();
    settled.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Aborted);
    assert_eq!(*hooks.0.lock().unwrap(), ["1.0 search"]);
}
