//! The export to a receiver, and to receivers that do not work.

use std::time::Duration;

use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_store_memory::MemoryStore;
use helix_agents_telemetry::Telemetry;
use helix_agents_test::{Reply, ScriptedLlm};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use crate::receiver::Receiver;
use crate::support::clerk;

/// Executes turns with two spans each.
async fn turns(telemetry: &Telemetry, count: usize) {
    let replies = (0..count).map(|_| Reply::text("Hello."));
    let builder = LocalRuntime::builder().store(MemoryStore::new());
    let builder = builder.llm(ScriptedLlm::new(replies)).observer(telemetry.clone());
    let (runtime, agent) = (builder.build().unwrap(), clerk());
    for _ in 0..count {
        let options = ExecuteOptions::default().session("talk");
        let run = runtime.execute(agent.erased(), "hi".into(), options).await.unwrap();
        assert_eq!(run.result().await.unwrap().status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn spans_are_sent_to_the_receiver() {
    let receiver = Receiver::start(&[200]).await;
    let builder = Telemetry::otlp().endpoint(&receiver.url).header("x-key", "k");
    let telemetry = builder.compression(false).service_name("support").build().unwrap();
    turns(&telemetry, 2).await;
    telemetry.shutdown(Duration::from_secs(30)).await;
    assert_eq!((telemetry.exported(), telemetry.dropped()), (4, 0));
    let [request] = &receiver.requests()[..] else { panic!("one batch") };
    assert!(request.head.starts_with("post /v1/traces http/1.1"), "{}", request.head);
    assert!(request.head.contains("x-key: k"), "{}", request.head);
    let chat = "chat scripted";
    let run = "invoke_agent clerk";
    assert_eq!(request.span_names(), [chat, run, chat, run]);
    assert!(String::from_utf8_lossy(&request.body).contains("support"));
}

#[tokio::test]
async fn spans_arrive_once_the_receiver_is_available_again() {
    let receiver = Receiver::start(&[503, 200]).await;
    let telemetry = Telemetry::otlp().endpoint(&receiver.url).build().unwrap();
    turns(&telemetry, 1).await;
    telemetry.flush().await;
    assert_eq!((telemetry.exported(), telemetry.dropped()), (2, 0));
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn refused_spans_are_dropped_at_once() {
    let receiver = Receiver::start(&[400]).await;
    let telemetry = Telemetry::otlp().endpoint(&receiver.url).build().unwrap();
    turns(&telemetry, 1).await;
    telemetry.flush().await;
    assert_eq!((telemetry.exported(), telemetry.dropped()), (0, 2));
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn a_shutdown_ends_within_its_grace_period() {
    // Nothing listens on this port.
    let telemetry = Telemetry::otlp().endpoint("http://127.0.0.1:9").build().unwrap();
    turns(&telemetry, 1).await;
    telemetry.shutdown(Duration::from_millis(50)).await;
    assert_eq!((telemetry.exported(), telemetry.dropped()), (0, 2));
    // Later spans are counted, and later calls return, whatever their grace period.
    turns(&telemetry, 1).await;
    telemetry.flush().await;
    telemetry.shutdown(Duration::MAX).await;
    assert_eq!(telemetry.dropped(), 4);
}

/// An exporter that never returns.
#[derive(Debug)]
struct Stuck;

impl SpanExporter for Stuck {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_full_queue_drops_new_spans() {
    let telemetry = Telemetry::exporter(Stuck).max_queued_spans(6).build().unwrap();
    turns(&telemetry, 10).await;
    assert_eq!(telemetry.dropped(), 14);
    telemetry.shutdown(Duration::ZERO).await;
    assert_eq!((telemetry.exported(), telemetry.dropped()), (0, 20));
}

#[test]
fn telemetry_needs_a_runtime() {
    let error = Telemetry::exporter(Stuck).build().unwrap_err();
    assert_eq!(error.code().as_str(), "config_invalid");
}
