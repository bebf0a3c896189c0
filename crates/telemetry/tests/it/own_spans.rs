//! Spans of `tracing` below a tool call.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::trace::TraceParent;
use helix_agents_telemetry::set_parent;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::support::Capture;

const CALL: &str = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01";

#[test]
fn a_span_of_tracing_is_below_the_call() {
    let (capture, call) = (Capture::default(), CALL.parse::<TraceParent>().unwrap());
    let provider = SdkTracerProvider::builder().with_simple_exporter(capture.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("app"));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let span = tracing::info_span!("query");
        set_parent(&span, call).unwrap();
        span.in_scope(|| tracing::info_span!("row").in_scope(|| ()));
    });
    let spans = capture.spans();
    assert_eq!(spans.len(), 2);
    let query = spans.iter().find(|span| span.name == "query").unwrap();
    assert_eq!(query.parent_span_id.to_bytes(), call.span().to_bytes());
    assert!(query.parent_span_is_remote);
    for span in &spans {
        assert_eq!(span.span_context.trace_id().to_bytes(), call.trace().to_bytes());
    }
}

#[test]
fn without_the_layer_there_is_an_error() {
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        let error = set_parent(&tracing::info_span!("query"), CALL.parse().unwrap()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    });
}
