//! Recovery, shutdown and building of the local runtime.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::event::SCHEMA;
use helix_agents_core::executor::{AgentExecutor, ExecuteOptions, ResumeOptions, RunHandle};
use helix_agents_core::id::AppendId;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::session::{RunStatus, export_session, import_session};
use helix_agents_core::store::{Append, Guard, LeaseChange, Page, SessionFilter, StateStore};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use serde_json::json;

fn agent() -> Agent {
    Agent::builder("waiter").system_prompt("You wait.").model("scripted").build().unwrap()
}

fn runtime(store: &MemoryStore, llm: ScriptedLlm) -> LocalRuntime {
    let registry = AgentRegistry::default();
    registry.register(&agent()).unwrap();
    LocalRuntime::builder()
        .store(store.clone())
        .llm(llm)
        .registry(registry)
        .lease(Duration::from_secs(60))
        .grace(Duration::from_millis(50))
        .build()
        .unwrap()
}

#[tokio::test]
async fn shutdown_stops_runs_and_another_runtime_recovers_them_at_once() {
    let store = MemoryStore::default();
    let gate = Gate::new();
    let first = runtime(&store, ScriptedLlm::new([Reply::text("done").at_gate(&gate)]));
    let mut handles = Vec::new();
    for _ in 0..3 {
        let options = ExecuteOptions::default();
        handles.push(first.execute(agent().erased(), "go".into(), options).await.unwrap());
    }
    gate.reached_by(3).await;
    within(first.shutdown()).await;
    for handle in &handles {
        assert_eq!(within(handle.result()).await.unwrap_err().code(), ErrorCode::Closed);
    }
    let refused = first.execute(agent().erased(), "go".into(), ExecuteOptions::default()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Closed);
    // The lease of one minute was released, so no process has to wait for it.
    let second = runtime(&store, ScriptedLlm::new([Reply::text("done")]));
    let recovered = second.recover().await.unwrap();
    assert_eq!(recovered.len(), 3);
    for handle in recovered {
        assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    }
    assert!(second.recover().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_runtime_that_is_idle_shuts_down_at_once() {
    within(runtime(&MemoryStore::default(), ScriptedLlm::new([])).shutdown()).await;
}

#[tokio::test]
async fn recovery_skips_sessions_of_unknown_agents() {
    let store = MemoryStore::default();
    let gate = Gate::new();
    let first = runtime(&store, ScriptedLlm::new([Reply::text("done").at_gate(&gate)]));
    let options = ExecuteOptions::default();
    let handle = first.execute(agent().erased(), "go".into(), options).await.unwrap();
    gate.reached().await;
    within(first.shutdown()).await;
    let stranger =
        LocalRuntime::builder().store(store.clone()).llm(ScriptedLlm::new([])).build().unwrap();
    assert!(stranger.recover().await.unwrap().is_empty());
    let second = runtime(&store, ScriptedLlm::new([Reply::text("done")]));
    let options = ResumeOptions::default();
    let resumed = second.resume(agent().erased(), handle.session(), options).await.unwrap();
    assert_eq!(within(resumed.result()).await.unwrap().status, RunStatus::Completed);
}

/// For example because a newer process wrote to it.
#[tokio::test]
async fn an_unreadable_log_does_not_prevent_other_recoveries() {
    let store = MemoryStore::default();
    let gate = Gate::new();
    let first = runtime(&store, ScriptedLlm::new([Reply::text("done").at_gate(&gate)]));
    for session in ["one", "other"] {
        let options = ExecuteOptions::default().session(session);
        first.execute(agent().erased(), "go".into(), options).await.unwrap();
    }
    gate.reached_by(2).await;
    within(first.shutdown()).await;
    // The session that a sweep processes first.
    let heads = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    let strange = Append {
        session: heads[0].session.clone(),
        expected: heads[0].position.clone(),
        id: AppendId::from("newer"),
        run: None,
        schema: SCHEMA + 1,
        count: 1,
        body: "[]".into(),
        summary: None,
        usage: None,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    };
    store.append(strange).await.unwrap();
    let second = runtime(&store, ScriptedLlm::new([Reply::text("done")]));
    let recovered = second.recover().await.unwrap();
    let recovered: Vec<_> = recovered.iter().map(RunHandle::session).collect();
    assert_eq!(recovered, [&heads[1].session]);
}

#[tokio::test]
async fn a_runtime_without_required_options_is_not_built() {
    let error = LocalRuntime::builder().build().unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    for lease in [Duration::from_millis(10), Duration::MAX] {
        let runtime = LocalRuntime::builder()
            .store(MemoryStore::default())
            .llm(ScriptedLlm::new([]))
            .lease(lease);
        assert_eq!(runtime.build().unwrap_err().code(), ErrorCode::ConfigInvalid, "{lease:?}");
    }
}

/// An import writes the parent last, so it may appear later.
#[tokio::test]
async fn a_child_whose_parent_is_missing_is_skipped() {
    let helper = Agent::builder("helper").description("Helps.").system_prompt("You help.");
    let helper = helper.model("scripted").output::<bool>().build().unwrap();
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    let boss = boss.sub_agent(&helper).build().unwrap();
    let runtime = |store: Arc<dyn StateStore>, gate: &Gate| {
        let registry = AgentRegistry::default();
        registry.register(&boss).unwrap();
        registry.register(&helper).unwrap();
        let asks = Reply::tool_call("subagent__helper", json!({ "message": "help" }));
        let asks = ScriptedLlm::new([asks, Reply::text("done")]);
        let helps = ScriptedLlm::new([Reply::finish(json!(true)).at_gate(gate)]);
        let llm = RoutingScriptedLlm::new().agent("boss", asks).agent("helper", helps);
        let runtime = LocalRuntime::builder().state_store(store).registry(registry).llm(llm);
        let runtime = runtime.stream_manager(Arc::new(MemoryStore::new()));
        runtime.grace(Duration::from_millis(50)).build().unwrap()
    };
    let (here, gate) = (MemoryStore::new(), Gate::new());
    let first = runtime(Arc::new(here.clone()), &gate);
    let options = ExecuteOptions::default();
    let root = first.execute(boss.erased(), "go".into(), options).await.unwrap().session().clone();
    within(gate.reached()).await;
    within(first.shutdown()).await;
    let export = export_session(&here, &root).await.unwrap();

    let there =
        FaultStore::new(Arc::new(MemoryStore::new())).with_fault("\"boss\"", Fault::FailBefore);
    import_session(&there, &export).await.unwrap_err();
    let sessions = there.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(sessions.len(), 1, "only the child exists");
    let second = runtime(Arc::new(there.clone()), &Gate::opened());
    assert!(second.sweep().await.unwrap().is_empty());
    import_session(&there, &export).await.unwrap();
    let swept = second.sweep().await.unwrap();
    assert_eq!(swept.iter().map(RunHandle::session).collect::<Vec<_>>(), [&root]);
    assert_eq!(within(swept[0].result()).await.unwrap().status, RunStatus::Completed);
}

/// An adapter that records the maximum number of retries of each call.
#[derive(Debug, Clone)]
struct Retries {
    model: ScriptedLlm,
    limits: Arc<Mutex<Vec<u32>>>,
}

#[async_trait]
impl LlmAdapter for Retries {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        self.limits.lock().unwrap().push(request.max_retries);
        self.model.generate_step(request, sink).await
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.model.check(config)
    }
}

#[tokio::test]
async fn model_calls_use_the_retry_limit_of_the_agent_or_three() {
    let llm = Retries { model: ScriptedLlm::new([Reply::text("done")]), limits: Arc::default() };
    let runtime =
        LocalRuntime::builder().store(MemoryStore::default()).llm(llm.clone()).build().unwrap();
    let builder = || Agent::builder("waiter").system_prompt("You wait.").model("scripted");
    for agent in [builder(), builder().llm(|config| config.max_retries = Some(7))] {
        let agent = agent.build().unwrap().erased();
        let handle = runtime.execute(agent, "go".into(), ExecuteOptions::default()).await.unwrap();
        within(handle.result()).await.unwrap();
    }
    assert_eq!(*llm.limits.lock().unwrap(), [3, 7]);
}
