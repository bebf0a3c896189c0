//! The conversion of spans to the types of the OpenTelemetry SDK.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use helix_agents_core::clock::Timestamp;
use opentelemetry::trace::{self as otel, SpanContext, Status, TraceFlags, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::conventions as names;
use crate::span::{Link, Span, SpanEvent, SpanKind, Value};

/// Converts a span. It is always sampled: other spans are not created.
pub(crate) fn span_data(span: Span) -> SpanData {
    let parent = span.parent.map(|parent| otel::SpanId::from_bytes(parent.to_bytes()));
    let mut events = SpanEvents::default();
    events.events = span.events.into_iter().map(event).collect();
    let mut links = SpanLinks::default();
    links.links = span.links.iter().map(link).collect();
    SpanData {
        span_context: context(span.trace.to_bytes(), span.id.to_bytes()),
        parent_span_id: parent.unwrap_or(otel::SpanId::INVALID),
        parent_span_is_remote: false,
        span_kind: match span.kind {
            SpanKind::Internal => otel::SpanKind::Internal,
            SpanKind::Client => otel::SpanKind::Client,
        },
        name: span.name.into(),
        start_time: time(span.start),
        end_time: time(span.end),
        attributes: attributes(span.attributes),
        dropped_attributes_count: 0,
        events,
        links,
        status: span.error.map_or(Status::Unset, Status::error),
        instrumentation_scope: InstrumentationScope::builder("helix-agents")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn context(trace: [u8; 16], span: [u8; 8]) -> SpanContext {
    let (trace, span) = (otel::TraceId::from_bytes(trace), otel::SpanId::from_bytes(span));
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
}

fn attributes(attributes: Vec<(Cow<'static, str>, Value)>) -> Vec<KeyValue> {
    attributes.into_iter().map(|(name, value)| KeyValue::new(name, converted(value))).collect()
}

fn converted(value: Value) -> opentelemetry::Value {
    match value {
        Value::String(text) => text.into(),
        Value::Int(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Bool(flag) => flag.into(),
        Value::Strings(texts) => {
            let texts = texts.into_iter().map(StringValue::from).collect();
            opentelemetry::Value::Array(Array::String(texts))
        }
    }
}

fn event(event: SpanEvent) -> otel::Event {
    otel::Event::new(event.name, time(event.at), attributes(event.attributes), 0)
}

fn link(link: &Link) -> otel::Link {
    let relation = vec![KeyValue::new(names::LINK, link.relation)];
    otel::Link::new(context(link.trace.to_bytes(), link.span.to_bytes()), relation, 0)
}
