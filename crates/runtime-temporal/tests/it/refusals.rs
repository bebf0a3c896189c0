//! Invalid options are refused before a run starts.

use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::guarantee::GuaranteeKind;
use helix_agents_runtime_temporal::RuntimeBuilder as _;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents_store_memory::MemoryStore;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{ScriptedLlm, within};
use helix_agents_testkit::servers;

use crate::deployment::Deployment;

fn agent() -> Agent {
    Agent::builder("teller").system_prompt("You tell.").model("scripted").build().unwrap()
}

#[tokio::test]
async fn a_store_of_a_single_process_is_refused() {
    let runtime = TemporalRuntime::builder()
        .store(MemoryStore::new())
        .llm(ScriptedLlm::new([]))
        .target(servers::temporal());
    let error = runtime.connect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert!(error.message().contains("use a SQLite, PostgreSQL or Redis store"), "{error}");
}

#[tokio::test]
async fn a_store_of_one_machine_is_accepted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("here.db")).await.unwrap();
    let guarantees = TemporalRuntime::builder().store(store).guarantees();
    let takeover =
        guarantees.iter().find(|guarantee| guarantee.promise == GuaranteeKind::TakenOver).unwrap();
    assert!(takeover.holds && takeover.reason.contains("on this machine only"), "{takeover:?}");
    let anywhere = TemporalRuntime::builder().guarantees();
    assert!(anywhere.iter().all(|guarantee| !guarantee.reason.contains("machine")), "{anywhere:?}");
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let here = Deployment::new().await;
    let runtime = || here.runtime(ScriptedLlm::new([]), &[]);
    for wrong in [
        runtime().attempts(0),
        runtime().work_items_per_history(0),
        runtime().task_queue(""),
        runtime().target("nowhere"),
        runtime().lease(Duration::from_millis(1)),
    ] {
        assert_eq!(wrong.connect().await.unwrap_err().code(), ErrorCode::ConfigInvalid);
    }
}

#[tokio::test]
async fn the_error_for_an_unavailable_server_names_it_after_a_wait() {
    let here = Deployment::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let runtime = here
        .runtime(ScriptedLlm::new([]), &[])
        .target(format!("http://127.0.0.1:{port}"))
        .connect_timeout(Duration::from_millis(600));
    let error = runtime.connect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

/// Another server listens at the address, or the server hangs.
#[tokio::test]
async fn a_server_that_does_not_answer_does_not_extend_the_wait() {
    let here = Deployment::new().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let runtime = here
        .runtime(ScriptedLlm::new([]), &[])
        .target(format!("http://{}", silent.local_addr().unwrap()))
        .connect_timeout(Duration::from_millis(600));
    let error = within(runtime.connect()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.message().contains("did not answer"), "{error}");
}

#[tokio::test]
async fn a_worker_reports_a_missing_namespace() {
    let here = Deployment::new().await;
    let runtime = here.runtime(ScriptedLlm::new([]), &[]).namespace("nowhere");
    let runtime = runtime.connect().await.unwrap();
    let worker = TemporalWorker::builder(&runtime).start().await.unwrap();
    let error = worker.ended().await.unwrap_err();
    assert!(format!("{error:?}").contains("nowhere"), "{error:?}");
}

/// Workers look up agents by name.
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
