//! What cannot work is refused before anything begins.

use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::guarantee::GuaranteeKind;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents_store_memory::MemoryStore;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_testkit::gate::within;
use helix_agents_testkit::scripted::ScriptedLlm;
use helix_agents_testkit::servers;

use crate::deployment::Deployment;

fn agent() -> Agent {
    Agent::builder("teller").system_prompt("You tell.").model("scripted").build().unwrap()
}

#[tokio::test]
async fn a_store_that_no_other_process_sees_is_refused() {
    let runtime = TemporalRuntime::builder()
        .store(MemoryStore::new())
        .llm(ScriptedLlm::new([]))
        .target(servers::temporal());
    let error = runtime.connect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert!(error.message().contains("use a store that they share"), "{error}");
}

#[tokio::test]
async fn a_store_of_one_machine_is_taken_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("here.db")).await.unwrap();
    let guarantees = TemporalRuntime::builder().store(store).guarantees();
    let takeover = guarantees.iter().find(|it| it.promise == GuaranteeKind::TakenOver).unwrap();
    assert!(takeover.holds && takeover.reason.contains("on this machine only"), "{takeover:?}");
    let anywhere = TemporalRuntime::builder().guarantees();
    assert!(anywhere.iter().all(|it| !it.reason.contains("machine")), "{anywhere:?}");
}

#[tokio::test]
async fn what_contradicts_itself_is_refused() {
    let here = Deployment::new().await;
    let runtime = || here.runtime(ScriptedLlm::new([]), &[]);
    for wrong in [
        runtime().attempts(0),
        runtime().parts_per_history(0),
        runtime().task_queue(""),
        runtime().target("nowhere"),
        runtime().lease(Duration::from_millis(1)),
    ] {
        assert_eq!(wrong.connect().await.unwrap_err().code(), ErrorCode::ConfigInvalid);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_waited_for_and_then_named() {
    let here = Deployment::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let runtime = here
        .runtime(ScriptedLlm::new([]), &[])
        .target(format!("http://127.0.0.1:{port}"))
        .connect_within(Duration::from_millis(600));
    let error = runtime.connect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

/// What takes connections at its address is no server of Temporal, or it hangs.
#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for_any_longer() {
    let here = Deployment::new().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let runtime = here
        .runtime(ScriptedLlm::new([]), &[])
        .target(format!("http://{}", silent.local_addr().unwrap()))
        .connect_within(Duration::from_millis(600));
    let error = within(runtime.connect()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.message().contains("did not answer"), "{error}");
}

#[tokio::test]
async fn a_worker_of_a_namespace_that_is_not_there_says_so() {
    let here = Deployment::new().await;
    let runtime = here.runtime(ScriptedLlm::new([]), &[]).namespace("nowhere");
    let runtime = runtime.connect().await.unwrap();
    let worker = TemporalWorker::builder(&runtime).start().await.unwrap();
    let error = worker.ended().await.unwrap_err();
    assert!(format!("{error:?}").contains("nowhere"), "{error:?}");
}

/// Whoever carries the run out finds the agent by its name.
#[tokio::test]
async fn an_agent_that_is_not_registered_is_refused() {
    let here = Deployment::new().await;
    let runtime = here.client(&[]).await;
    let refused = runtime
        .execute(agent().erased(), "go".into(), ExecuteOptions::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AgentNotFound);
    assert!(refused.message().contains("registry"), "{refused}");
}
