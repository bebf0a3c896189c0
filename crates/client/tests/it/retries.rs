//! Repetitions of requests whose response was lost.

use std::time::Duration;

use helix_agents_client::{ResumeRequest, StartRequest, StopRequest};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::session::Submission;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use crate::support::{Proxy, World, builder, fast, fixed, rest};

const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"agents\":[]}";

fn status(line: &str, headers: &str) -> String {
    format!("HTTP/1.1 {line}\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn a_start_whose_response_is_lost_starts_one_run() {
    let world = World::new(ScriptedLlm::new([Reply::text("Once.")])).await;
    let proxy = Proxy::to(world.address).await;
    // Without any byte of the response, and in the middle of it.
    proxy.cut("POST /start", [1, 40]);
    let client = builder(proxy.address).build().unwrap();
    let started = client.start(StartRequest::new("clerk", "Go!")).await.unwrap();
    assert_eq!(proxy.cuts(), 2);
    rest(&mut client.follow(&started.session)).await;
    let sessions = client.sessions(&Default::default()).await.unwrap().sessions;
    assert_eq!((sessions.len(), world.model.calls()), (1, 1));
    assert_eq!(client.session(&started.session).await.unwrap().runs.len(), 1);
}

#[tokio::test]
async fn answers_messages_and_deletions_whose_response_is_lost_take_effect_once() {
    let replies = [Reply::tool_call("ask", json!({ "question": "Why?" })), Reply::text("I see.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let proxy = Proxy::to(world.address).await;
    let (client, talk) = (builder(proxy.address).build().unwrap(), "talk".into());
    client.start(StartRequest::new("clerk", "Go!").session("talk")).await.unwrap();
    rest(&mut client.follow(&talk)).await;
    proxy.cut("POST /messages", [1]);
    client.send_message(&talk, "And this?").await.unwrap();
    proxy.cut("POST /submit", [1]);
    client.submit(&talk, &Submission::result("1.0", "So.").unwrap()).await.unwrap();
    rest(&mut client.follow(&talk)).await;
    let seen = format!("{:?}", world.model.seen()[1].messages);
    assert_eq!(seen.matches("And this?").count(), 1, "{seen}");
    proxy.cut("DELETE ", [1]);
    client.delete(&talk).await.unwrap();
    assert_eq!(proxy.cuts(), 3);
}

#[tokio::test]
async fn a_resume_and_a_fork_whose_response_is_lost_are_not_repeated() {
    let gate = Gate::new();
    let replies = [Reply::more_text("One.").at_gate(&gate), Reply::text("Two.")];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let proxy = Proxy::to(world.address).await;
    let (client, talk) = (builder(proxy.address).build().unwrap(), "talk".into());
    client.start(StartRequest::new("clerk", "Go!").session("talk")).await.unwrap();
    gate.reached().await;
    proxy.cut("POST /interrupt", [1]);
    let error = client.interrupt(StopRequest::new("talk")).await.unwrap_err();
    assert!(error.is(ErrorCode::ServerUnreachable) && error.is_retryable(), "{error}");
    gate.open();
    rest(&mut client.follow(&talk)).await;
    proxy.cut("POST /resume", [1]);
    assert!(
        client
            .resume(ResumeRequest::new("talk"))
            .await
            .unwrap_err()
            .is(ErrorCode::ServerUnreachable)
    );
    rest(&mut client.follow(&talk)).await;
    proxy.cut("POST /fork", [1]);
    assert!(client.fork(&talk, None, None).await.unwrap_err().is(ErrorCode::ServerUnreachable));
    assert_eq!((proxy.cuts(), world.model.calls()), (3, 2));
    assert_eq!(client.sessions(&Default::default()).await.unwrap().sessions.len(), 2);
}

#[tokio::test]
async fn a_proxy_without_its_server_is_asked_again_a_few_times() {
    let responses = [
        status("503 Service Unavailable", "retry-after: 0\r\n"),
        status("502 Bad Gateway", ""),
        EMPTY.to_owned(),
    ];
    let (address, mut heads) = fixed(responses).await;
    assert_eq!(builder(address).build().unwrap().agents().await.unwrap(), [""; 0]);
    for _ in 0..3 {
        assert!(heads.recv().await.unwrap().starts_with("GET /agents "));
    }
    let (address, mut heads) = fixed((0..9).map(|_| status("502 Bad Gateway", ""))).await;
    let mut limits = fast();
    limits.retries = 2;
    let client = builder(address).limits(limits).build().unwrap();
    let error = client.agents().await.unwrap_err();
    assert_eq!((error.code(), error.status()), ("server_unreachable", Some(502)), "{error}");
    let mut attempts = 0;
    while heads.try_recv().is_ok() {
        attempts += 1;
    }
    assert_eq!(attempts, 3);
}

#[tokio::test]
async fn a_server_that_is_silent_is_not_waited_for_forever() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut limits = fast();
    limits.retries = 1;
    let mut timeouts = helix_agents_client::Timeouts::default();
    timeouts.request = Duration::from_millis(50);
    let client = builder(listener.local_addr().unwrap()).limits(limits).timeouts(timeouts);
    let error = client.build().unwrap().agents().await.unwrap_err();
    assert_eq!(error.to_string(), "server_unreachable: the server did not answer in time");
}
