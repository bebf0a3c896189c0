//! TLS, client certificates and API keys.

use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_runtime_temporal::options::ConnectionOptions;
use helix_agents_test::{Reply, ScriptedLlm, within};
use helix_agents_testkit::certificates::Authority;

use crate::deployment::{Deployment, Process, until_lease_expired};
use crate::door::Door;

fn agents() -> [AnyAgent; 1] {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted").build();
    [agent.unwrap().erased()]
}

/// Starts a process with a worker that uses this connection.
async fn worker(here: &Deployment, replies: usize, over: ConnectionOptions) -> Process {
    let llm = ScriptedLlm::new(vec![Reply::text("done"); replies]);
    Process::new(here.runtime(llm, &agents()).connection_options(over)).await
}

/// Returns the error of connecting with these options.
async fn refusal(over: ConnectionOptions) -> Error {
    let here = Deployment::new().await;
    let runtime = here.runtime(ScriptedLlm::new([]), &[]).connection_options(over);
    let error = within(runtime.connect()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{error:?}");
    error
}

#[tokio::test]
async fn a_server_that_requires_a_client_certificate_is_reached() {
    let door = Door::for_certificates().await;
    let here = Deployment::new().await;
    let known = door.reached_by(door.signed_by(&door.authority), None);
    let worker = worker(&here, 1, known).await;
    let handle = worker.start(&agents()[0]).await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    worker.shut_down().await;
    let requests = door.requests();
    let was_called = |method: &str| requests.iter().any(|path| path.ends_with(method));
    assert!(was_called("/RespondActivityTaskCompleted"), "{requests:?}");
    assert!(!was_called("/RecordActivityTaskHeartbeat"), "work items this short need no heartbeat");
}

#[tokio::test]
async fn a_client_without_a_trusted_certificate_gets_an_error() {
    let door = Door::for_certificates().await;
    let nameless = Door::trusting(&door.authority);
    let stranger = door.signed_by(&Authority::new());
    for (tls, expected) in [(nameless, "CertificateRequired"), (stranger, "UnknownCA")] {
        let error = refusal(door.reached_by(tls, None)).await;
        assert!(format!("{error:?}").contains(expected), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_of_another_root_is_not_trusted() {
    let door = Door::for_key("open sesame").await;
    let other = door.reached_by(Door::trusting(&Authority::new()), Some("open sesame"));
    // Without TLS options, an `https` target uses TLS with the system's trusted roots.
    let mut usual = other.clone();
    usual.tls_options = None;
    for over in [other, usual] {
        let error = refusal(over).await;
        assert!(format!("{error:?}").contains("UnknownIssuer"), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_requires_an_api_key_is_reached() {
    let door = Door::for_key("first").await;
    let here = Deployment::new().await;
    let over = |key| door.reached_by(Door::trusting(&door.authority), key);
    for key in [None, Some("wrong")] {
        let error = refusal(over(key)).await;
        assert!(format!("{error:?}").contains("Request unauthorized"), "{error:?}");
    }

    let worker = worker(&here, 2, over(Some("first"))).await;
    let handle = worker.start(&agents()[0]).await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);

    // Change the key while the worker is running. The run that was rejected in between is recovered.
    door.change_key("second");
    let options = ExecuteOptions::default().session("another");
    let [agent] = agents();
    let execute = worker.runtime.execute(agent, "go".into(), options);
    assert_eq!(within(execute).await.unwrap_err().code(), ErrorCode::ConfigInvalid);
    worker.runtime.engine().set_api_key("second");
    let handle = worker.runtime.handle(&"another".into()).await.unwrap();
    until_lease_expired(&worker, &handle).await;
    worker.runtime.sweep().await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    worker.shut_down().await;
}
