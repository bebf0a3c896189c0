//! An exporter of spans that encodes them and discards the result.

use std::hint::black_box;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost::Message as _;

/// Encodes spans as OTLP does, so that only the request is missing.
#[derive(Debug)]
pub(super) struct Discard;

impl SpanExporter for Discard {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let resource = ResourceAttributesWithSchema::default();
        let resource_spans = group_spans_by_resource_and_scope(batch, &resource);
        black_box(ExportTraceServiceRequest { resource_spans }.encode_to_vec());
        Ok(())
    }
}
