//! Metrics of real runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::session::Submission;
use helix_agents_core::store::StateStore as _;
use helix_agents_core::tool::Tool;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_store_memory::{MemoryOptions, MemoryStore};
use helix_agents_telemetry::{SpanOptions, Telemetry, tree_spans};
use helix_agents_test::{Reply, ScriptedLlm};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use prost::Message as _;
use serde_json::json;

use crate::clock::ManualClock;
use crate::receiver::Receiver;
use crate::support::{Capture, DESK, Word, World};

/// The sum of a metric for one set of attributes, and the number of values of a histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sum {
    sum: f64,
    count: u64,
}

/// The sums by name and attributes, such as `helix.runs.ended clerk completed`.
type Sums = BTreeMap<String, Sum>;

fn sums(request: ExportMetricsServiceRequest) -> Sums {
    let mut sums = Sums::new();
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    for metric in scopes.flat_map(|scope| scope.metrics) {
        let mut add = |attributes: &[KeyValue], sum, count| {
            let mut values: Vec<_> = attributes.iter().map(|a| (a.key.clone(), text(a))).collect();
            values.sort();
            let values = values.into_iter().map(|(_, value)| format!(" {value}"));
            let key = metric.name.clone() + &values.collect::<String>();
            assert_eq!(sums.insert(key, Sum { sum, count }), None);
        };
        match metric.data.unwrap() {
            metric::Data::Histogram(histogram) => {
                for point in histogram.data_points {
                    add(&point.attributes, point.sum.unwrap(), point.count);
                }
            }
            metric::Data::Sum(counter) => {
                for point in counter.data_points {
                    let sum = match point.value.unwrap() {
                        number_data_point::Value::AsDouble(sum) => sum,
                        number_data_point::Value::AsInt(sum) => {
                            f64::from(u32::try_from(sum).unwrap())
                        }
                    };
                    add(&point.attributes, sum, 0);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    sums
}

fn text(attribute: &KeyValue) -> String {
    match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        other => panic!("{}: {other:?}", attribute.key),
    }
}

/// An exporter that keeps the last export.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Option<ExportMetricsServiceRequest>>>);

impl PushMetricExporter for Kept {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(metrics.into());
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

impl Kept {
    fn sums(&self) -> Sums {
        sums(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap())
    }
}

#[tokio::test]
async fn metrics_are_sums_over_the_spans() {
    let (kept, world) = (Kept::default(), World::new(SpanOptions::default().sample_ratio(0.0)));
    let builder = Telemetry::exporter(Capture::default()).metrics(kept.clone());
    let telemetry = builder.span_options(world.options.clone()).build().unwrap();
    world.play_with(&telemetry, None).await;
    telemetry.flush().await;
    assert_eq!(telemetry.exported(), 0, "no trace is sampled");
    let sums = kept.sums();
    let expected = [
        ("gen_ai.client.operation.duration chat unknown scripted scripted", None, 4),
        ("gen_ai.client.operation.time_to_first_chunk chat unknown scripted scripted", None, 4),
        ("gen_ai.client.token.usage chat unknown scripted scripted input", Some(65.0), 4),
        ("gen_ai.client.token.usage chat unknown scripted scripted output", Some(14.0), 4),
        ("gen_ai.execute_tool.duration clerk look_up function", None, 1),
        ("gen_ai.execute_tool.duration clerk subagent__poet function", None, 1),
        ("gen_ai.invoke_agent.duration clerk", None, 2),
        ("gen_ai.invoke_agent.duration poet", None, 1),
        ("helix.runs.ended clerk completed resume", Some(1.0), 0),
        ("helix.runs.ended clerk suspended_client_tool execute", Some(1.0), 0),
        ("helix.runs.ended poet completed execute", Some(1.0), 0),
        ("helix.telemetry.dropped", Some(0.0), 0),
        ("helix.wait.duration clerk client returned", None, 1),
    ];
    let found: Vec<_> = sums.iter().map(|(key, sum)| (&**key, sum.count)).collect();
    assert_eq!(found, expected.map(|(key, _, count)| (key, count)));
    for (key, sum, _) in expected {
        assert!(sum.is_none_or(|sum| sum == sums[key].sum), "{key}: {:?}", sums[key]);
    }
}

/// The time that a session waits is part of the wait, and not of the runs.
#[tokio::test]
async fn a_wait_of_a_day_is_no_work() {
    let kept = Kept::default();
    let telemetry = Telemetry::exporter(Capture::default()).metrics(kept.clone()).build().unwrap();
    let agent = Agent::builder("clerk").system_prompt("You serve.").model("scripted");
    let agent = agent.tool(Tool::client::<Word>("ask", "Asks.")).build().unwrap();
    let replies = [Reply::tool_call("ask", json!({ "word": "colour" })), Reply::text("Red it is.")];
    let clock = Arc::new(ManualClock::default());
    let store =
        MemoryStore::with_clock(MemoryOptions::default(), Arc::<ManualClock>::clone(&clock));
    let builder = LocalRuntime::builder().store(store).clock(Arc::<ManualClock>::clone(&clock));
    let builder = builder.llm(ScriptedLlm::new(replies)).observer(telemetry.clone());
    let runtime = builder.build().unwrap();
    let options = ExecuteOptions::default().session(DESK);
    let run = runtime.execute(agent.erased(), "hi".into(), options).await.unwrap();
    run.result().await.unwrap();
    clock.advance(Duration::from_secs(24 * 60 * 60));
    let answer = Submission::result("1.0", &json!({ "word": "red" })).unwrap();
    runtime.submit_tool_result(&DESK.into(), answer).await.unwrap();
    let run = runtime.resume(agent.erased(), &DESK.into(), ResumeOptions::default()).await.unwrap();
    run.result().await.unwrap();
    telemetry.flush().await;
    let sums = kept.sums();
    let wait = sums["helix.wait.duration clerk client returned"];
    assert_eq!(wait, Sum { sum: 86_400.0, count: 1 });
    let runs = sums["gen_ai.invoke_agent.duration clerk"];
    assert_eq!(runs, Sum { sum: 0.0, count: 2 });
}

#[tokio::test]
async fn metrics_are_sent_to_the_receiver() {
    let receiver = Receiver::start(&[200]).await;
    let builder = Telemetry::otlp().endpoint(format!("{}/v1/traces", receiver.url)).metrics(true);
    let builder = builder.header("x-key", "a%20b").service_name("support").compression(false);
    let telemetry = builder.build().unwrap();
    World::new(SpanOptions::default()).play_with(&telemetry, None).await;
    telemetry.shutdown(Duration::from_secs(30)).await;
    let requests = receiver.requests();
    let of_metrics =
        |request: &&crate::receiver::Request| request.head.starts_with("post /v1/metrics ");
    let request = requests.iter().find(of_metrics).unwrap();
    assert!(request.head.contains("x-key: a%20b"), "{}", request.head);
    assert!(String::from_utf8_lossy(&request.body).contains("support"));
    let sums = sums(ExportMetricsServiceRequest::decode(&*request.body).unwrap());
    assert_eq!(sums["helix.telemetry.dropped"].sum, 0.0);
    assert_eq!(sums["helix.runs.ended clerk completed resume"].sum, 1.0);
}

#[tokio::test]
async fn a_receiver_that_refuses_metrics_still_receives_spans() {
    let receiver = Receiver::start(&[404]).await;
    let telemetry = Telemetry::otlp().endpoint(&receiver.url).metrics(true).build().unwrap();
    World::new(SpanOptions::default()).play_with(&telemetry, None).await;
    telemetry.shutdown(Duration::from_secs(30)).await;
    assert!(telemetry.dropped() > 0);
}

#[tokio::test]
async fn each_attempt_of_a_store_operation_is_measured() {
    let kept = Kept::default();
    let telemetry = Telemetry::exporter(Capture::default()).metrics(kept.clone()).build().unwrap();
    let store = MemoryStore::new();
    let measured = telemetry.measured_store(Arc::new(store.clone()));
    let agent = Agent::builder("clerk").system_prompt("You serve.").model("scripted");
    let builder = LocalRuntime::builder().state_store(Arc::new(measured.clone()));
    let builder = builder.stream_manager(Arc::new(store)).observer(telemetry.clone());
    let runtime = builder.llm(ScriptedLlm::new([Reply::text("Hello.")])).build().unwrap();
    let options = ExecuteOptions::default().session(DESK);
    let run = runtime.execute(agent.build().unwrap().erased(), "hi".into(), options).await.unwrap();
    run.result().await.unwrap();
    let missing = measured.renew(&"missing".into(), &"run".into(), Duration::ZERO).await;
    assert_eq!(missing.unwrap_err().code(), ErrorCode::SessionNotFound);
    telemetry.flush().await;
    let sums = kept.sums();
    assert!(sums["helix.store.duration append done"].count >= 1, "{sums:#?}");
    assert_eq!(sums["helix.store.duration create_session done"].count, 1);
    assert_eq!(sums["helix.store.duration session_not_found renew"].count, 1);
}

#[tokio::test]
async fn a_store_is_not_measured_without_metrics() {
    let telemetry = Telemetry::exporter(Capture::default()).build().unwrap();
    let store = telemetry.measured_store(Arc::new(MemoryStore::new()));
    assert!(store.head(&DESK.into()).await.unwrap().is_none());
}

/// Neither the ratio nor the flag of the caller excludes work from metrics and from an export on request.
#[tokio::test]
async fn a_trace_that_is_not_sampled_is_measured() {
    let (kept, world) = (Kept::default(), World::new(SpanOptions::default()));
    let telemetry = Telemetry::exporter(Capture::default()).metrics(kept.clone()).build().unwrap();
    let caller = "00-cccccccccccccccccccccccccccccccc-dddddddddddddddd-00".parse().unwrap();
    world.play_with(&telemetry, Some(caller)).await;
    telemetry.flush().await;
    assert_eq!(telemetry.exported(), 0);
    assert_eq!(kept.sums()["helix.runs.ended clerk completed resume"].sum, 1.0);
    assert!(world.logged().await.is_empty());
    let all = tree_spans(&world.store, &DESK.into(), &SpanOptions::default().all_traces()).await;
    assert_eq!(all.unwrap().len(), 10);
}
