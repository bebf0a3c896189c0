//! A child whose creation was not acknowledged. It may exist, so its call must not fail.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, ExecuteOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::{SessionFilter, StateStore, list_all};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm, within};
use serde_json::json;

#[tokio::test]
async fn the_next_run_finds_a_child_that_may_exist() {
    let memory = MemoryStore::default();
    let store =
        FaultStore::new(Arc::new(memory.clone())).with_fault("\"parent\"", Fault::LoseReply);
    let child = Agent::builder("child").description("Works.").system_prompt("p").model("scripted");
    let child = child.output::<String>().build().unwrap();
    let boss = Agent::builder("boss").system_prompt("p").model("scripted").sub_agent(&child);
    let boss = boss.build().unwrap().erased();
    let call = Reply::tool_call("subagent__child", json!({"message": "go"}));
    let replies = [call, Reply::finish(json!("done")), Reply::text("So.")];
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store))
        .stream_manager(Arc::new(memory.clone()))
        .llm(ScriptedLlm::new(replies))
        .store_retry_timeout(Duration::ZERO)
        .lease(Duration::from_millis(300))
        .build()
        .unwrap();
    let session = SessionId::from("boss");
    let options = ExecuteOptions::default().session("boss");
    let handle = runtime.execute(Arc::clone(&boss), "go".into(), options).await.unwrap();
    let stopped = within(handle.result()).await.unwrap_err();
    assert_eq!(stopped.code(), ErrorCode::StoreUnavailable, "{stopped:?}");

    let handle = runtime.resume(boss, &session, ResumeOptions::default()).await.unwrap();
    let ended = within(handle.result()).await.unwrap();
    assert_eq!(ended.status, RunStatus::Completed, "{ended:?}");
    let known = list_all(&memory as &dyn StateStore, &SessionFilter::default()).await.unwrap();
    assert_eq!(known.len(), 2, "the parent and one child: {known:?}");
    let fold = runtime.handle(&session).await.unwrap().load_session().await.unwrap();
    let call = fold.transcript().iter().find(|message| format!("{message:?}").contains("done"));
    assert!(call.is_some(), "the call has the child's output: {:?}", fold.transcript());
}
