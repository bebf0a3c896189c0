//! The results that hooks receive after the owner of a run has changed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, ToolCallView};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, load};
use helix_agents_core::store::StateStore;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::{Value, json};

const SESSION: &str = "s";

/// Hooks that note each result.
#[derive(Debug, Clone, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl AgentHooks for Noted {
    async fn after_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
        outcome: &ToolOutcome,
    ) -> HookResult {
        let outcome = match outcome {
            ToolOutcome::Success(result) => result.text().to_owned(),
            ToolOutcome::Error(error) => error.code.to_string(),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(format!("{} {outcome}", call.call));
        Ok(())
    }
}

impl Noted {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Returns an agent whose tools wait at these gates and return the name of their process.
fn agent(process: &str, gates: [&Gate; 2], noted: &Noted) -> Agent {
    let tool = |(name, gate): (&str, &Gate)| {
        let (gate, process) = (gate.clone(), process.to_owned());
        let run = move |_: Value, _: ToolContext| {
            let (gate, process) = (gate.clone(), process.clone());
            async move {
                gate.pass().await;
                Ok::<_, ToolError>(json!(process))
            }
        };
        Tool::dynamic(name, "Works.", json!({"type": "object"}), run)
    };
    Agent::builder("worker")
        .system_prompt("You work.")
        .model("scripted")
        .tools(["one", "two"].into_iter().zip(gates).map(tool))
        .hooks(noted.clone())
        .build()
        .unwrap()
}

fn runtime(store: impl StateStore + 'static, memory: &MemoryStore, agent: &Agent) -> LocalRuntime {
    let calls = Reply::calls([("one", json!({})), ("two", json!({}))]);
    let registry = AgentRegistry::default();
    registry.replace(agent);
    LocalRuntime::builder()
        .state_store(Arc::new(store))
        .stream_manager(Arc::new(memory.clone()))
        .registry(registry)
        .llm(ScriptedLlm::new([calls, Reply::text("Done.")]))
        .lease(Duration::from_secs(60))
        .grace(Duration::ZERO)
        .build()
        .unwrap()
}

/// Waits until the log has a result of the first call.
async fn until_recorded(memory: &MemoryStore) {
    let is_recorded = async || {
        let session = load(memory, &SessionId::from(SESSION)).await.unwrap();
        let step = session.open_step();
        step.and_then(|step| step.call(&"1.0".into())).is_some_and(|call| call.finish.is_some())
    };
    within(async {
        while !is_recorded().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A process executes a call again. The result of its predecessor is recorded first.
#[tokio::test]
async fn hooks_receive_the_late_result_instead_of_that_of_their_own_run() {
    let (memory, session) = (MemoryStore::new(), SessionId::from(SESSION));
    let (append, never, opened) = (Gate::new(), Gate::new(), Gate::opened());
    let store = FaultStore::new(Arc::new(memory.clone()))
        .with_fault(r#""tool_finished":{"call":"1.0""#, Fault::HoldBefore(append.clone()));
    let of_first = agent("first", [&opened, &never], &Noted::default());
    let stalled = runtime(store, &memory, &of_first);
    let options = ExecuteOptions::default().session(SESSION);
    let first = stalled.execute(of_first.erased(), "go".into(), options).await.unwrap();
    append.reached().await;
    memory.renew(&session, first.run(), Duration::ZERO).await.unwrap();

    let (one, two, noted) = (Gate::new(), Gate::new(), Noted::default());
    let of_second = agent("second", [&one, &two], &noted);
    let next = runtime(memory.clone(), &memory, &of_second);
    let second = next.resume(of_second.erased(), &session, ResumeOptions::default()).await.unwrap();
    one.reached().await;
    append.open();
    assert!(within(first.result()).await.is_err());
    until_recorded(&memory).await;
    one.open();
    two.open();
    assert_eq!(within(second.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(noted.all(), [r#"1.0 "first""#, r#"1.1 "second""#]);
}

/// A process crashes while it waits for the second of two results, and the session is aborted.
#[tokio::test]
async fn an_abort_delivers_the_results_that_a_crashed_run_has_recorded() {
    let (memory, session) = (MemoryStore::new(), SessionId::from(SESSION));
    let (never, opened) = (Gate::new(), Gate::opened());
    let of_first = agent("first", [&opened, &never], &Noted::default());
    let crashed = runtime(memory.clone(), &memory, &of_first);
    let options = ExecuteOptions::default().session(SESSION);
    let first = crashed.execute(of_first.erased(), "go".into(), options).await.unwrap();
    until_recorded(&memory).await;
    memory.renew(&session, first.run(), Duration::ZERO).await.unwrap();

    let noted = Noted::default();
    let of_second = agent("second", [&never, &never], &noted);
    let next = runtime(memory.clone(), &memory, &of_second);
    within(next.abort(&session, None)).await.unwrap();
    assert_eq!(noted.all(), [r#"1.0 "first""#, "1.1 tool_outcome_unknown"]);
    let ended = load(&memory, &session).await.unwrap();
    assert_eq!(ended.last_run().unwrap().status, RunStatus::Aborted);
}
