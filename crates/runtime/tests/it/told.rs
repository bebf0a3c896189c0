//! What hooks are told of results, when somebody is faster than a part of a run.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use helix_agents_core::agent::Agent;
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, ToolCallView};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime::Settings;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::faults::{Fault, FaultStore};
use helix_agents_testkit::gate::{Gate, within};
use helix_agents_testkit::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};
use helix_agents_testkit::trees::Redelivery;
use serde_json::{Value, json};

use crate::by_hand::helps;
use crate::in_parts::InParts;

/// Notes of which results it is told.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl AgentHooks for Told {
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

fn runtime(store: FaultStore, llm: impl LlmAdapter) -> InParts {
    let settings = Settings {
        store: Some(Arc::new(store)),
        streams: Some(Arc::new(MemoryStore::new())),
        llm: Some(Arc::new(llm)),
        ..Settings::default()
    };
    InParts::new(settings, Redelivery::Never)
}

/// The part that is about to suspend the run again has had the hooks told, and finds that it goes on.
#[tokio::test(start_paused = true)]
async fn results_are_told_of_once_though_an_approval_comes_before_the_run_rests() {
    let (told, rests) = (Told::default(), Gate::new());
    let store = FaultStore::new(Arc::new(MemoryStore::new()));
    let agent = Agent::builder("clerk").system_prompt("You sign.").model("scripted");
    let agent = agent.tool(tool("search").requires_approval());
    let agent = agent.tool(tool("sign").requires_approval());
    let agent = agent.hooks(told.clone()).build().unwrap().erased();
    let calls = ["search", "sign", "missing"].map(|name| (name, json!({})));
    let llm = ScriptedLlm::new([Reply::calls(calls), Reply::text("So.")]);
    let runtime = runtime(store.clone(), llm);
    let (session, options) = (SessionId::from("s"), ExecuteOptions::default().session("s"));
    let handle = runtime.execute(Arc::clone(&agent), "go".into(), options).await.unwrap();
    assert!(within(handle.result()).await.unwrap().status.is_suspended());

    store.strike("run_ended", Fault::HoldBefore(rests.clone()));
    runtime.submit_tool_result(&session, Submission::approve("1.0")).await.unwrap();
    let handle = runtime.resume(agent, &session, ResumeOptions::default()).await.unwrap();
    rests.reached().await;
    assert_eq!(*told.0.lock().unwrap(), ["1.2 missing", "1.0 search"]);
    runtime.submit_tool_result(&session, Submission::approve("1.1")).await.unwrap();
    rests.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*told.0.lock().unwrap(), ["1.2 missing", "1.0 search", "1.1 sign"]);
}

/// The part that refuses it is not the one that goes on after the child.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_beside_a_child_is_told_of() {
    let told = Told::default();
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    let boss = boss.sub_agent(&helps()).hooks(told.clone()).build().unwrap();
    let calls = [("missing", json!({})), ("subagent__helper", json!({"message": "help"}))];
    let llm = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([Reply::calls(calls), Reply::text("So.")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!(true))]));
    let runtime = runtime(FaultStore::new(Arc::new(MemoryStore::new())), llm);
    let options = ExecuteOptions::default();
    let handle = runtime.execute(boss.erased(), "go".into(), options).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*told.0.lock().unwrap(), ["1.0 missing"]);
}
