//! The export to a receiver, and to receivers that do not work.

use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_store_memory::MemoryStore;
use helix_agents_telemetry::{SpanOptions, Telemetry, otlp_json};
use helix_agents_test::{Reply, ScriptedLlm};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use serde_json::json;

use crate::receiver::Receiver;
use crate::support::{clerk, desk_spans};

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

#[tokio::test]
async fn recorded_spans_are_sent_in_batches() {
    let spans = desk_spans(&SpanOptions::default()).await;
    let receiver = Receiver::start(&[200]).await;
    let builder = Telemetry::otlp().endpoint(format!("{}/?key=k", receiver.url));
    let many = spans.iter().cycle().take(spans.len() * 100).cloned().collect();
    builder.clone().compression(false).send(many).await.unwrap();
    let requests = receiver.requests();
    assert!(requests.len() > 1, "512 spans at most for each request");
    assert!(requests[0].head.starts_with("post /v1/traces?key=k http/1.1"), "{}", requests[0].head);
    let received: usize = requests.iter().map(|request| request.span_names().len()).sum();
    assert_eq!(received, spans.len() * 100);
    builder.check().await.unwrap();
}

#[tokio::test]
async fn the_refusal_of_a_receiver_is_an_error() {
    let receiver = Receiver::start(&[401]).await;
    let builder = Telemetry::otlp().endpoint(&receiver.url);
    let spans = desk_spans(&SpanOptions::default()).await;
    for error in [builder.check().await.unwrap_err(), builder.send(spans).await.unwrap_err()] {
        assert_eq!(error.code(), ErrorCode::TelemetryFailed);
        assert!(error.message().contains("401"), "{error}");
    }
    assert_eq!(receiver.requests().len(), 2, "no retry of what the receiver refuses");
}

/// The document is the JSON form of the request that the exporter sends.
#[tokio::test]
async fn spans_have_a_json_form() {
    let spans = desk_spans(&SpanOptions::default()).await;
    let document = otlp_json(spans.clone(), Some("support")).unwrap();
    let resource = &document["resourceSpans"][0];
    let service = json!({ "key": "service.name", "value": { "stringValue": "support" } });
    assert!(resource["resource"]["attributes"].as_array().unwrap().contains(&service));
    let written = resource["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(written.len(), spans.len());
    for (span, written) in spans.iter().zip(written) {
        assert_eq!(written["traceId"], span.trace.to_string());
        assert_eq!(written["spanId"], span.id.to_string());
        assert_eq!(written["name"], *span.name);
        assert_eq!(written["startTimeUnixNano"], (span.start.0 * 1_000_000).to_string());
    }
}
