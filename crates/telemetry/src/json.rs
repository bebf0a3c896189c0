//! Spans as a JSON document.

use helix_agents_core::error::{Error, ErrorCode, Result};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;

use crate::export::{resource, span_data};
use crate::span::Span;

/// Returns spans as the body of an OTLP request in JSON, which a receiver accepts at `/v1/traces` with the content type
/// `application/json`. `service_name` is the name of the service. Default: the environment variable `OTEL_SERVICE_NAME`.
///
/// # Errors
/// Returns [`ErrorCode::Internal`] if the spans cannot be serialised.
pub fn otlp_json(spans: Vec<Span>, service_name: Option<&str>) -> Result<serde_json::Value> {
    let resource = ResourceAttributesWithSchema::from(&resource(service_name));
    let spans = spans.into_iter().map(span_data).collect();
    let resource_spans = group_spans_by_resource_and_scope(spans, &resource);
    serde_json::to_value(ExportTraceServiceRequest { resource_spans }).map_err(|error| {
        Error::new(ErrorCode::Internal, "the spans cannot be serialised").with_source(error)
    })
}
