//! What only this runtime has: recovery on start-up, shutdown, building.

use std::time::Duration;

use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, ExecuteOptions, ResumeOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::gate::{Gate, within};
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};

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
    // The lease of a minute was given up, so nobody has to wait for it.
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
async fn recovery_leaves_sessions_of_unknown_agents_alone() {
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

#[tokio::test]
async fn a_runtime_without_its_parts_is_not_built() {
    let error = LocalRuntime::builder().build().unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    let short = LocalRuntime::builder()
        .store(MemoryStore::default())
        .llm(ScriptedLlm::new([]))
        .lease(Duration::from_millis(10));
    assert_eq!(short.build().unwrap_err().code(), ErrorCode::ConfigInvalid);
}
