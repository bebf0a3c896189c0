//! Spans of the application in the traces of agents.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::trace::TraceParent;
use opentelemetry::Context;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Sets the parent of a `tracing` span, usually to a tool call: pass the result of `ToolContext::trace_parent`. Call it before the
/// span is entered. The layer of `tracing-opentelemetry` exports the span.
///
/// # Errors
/// Returns [`ErrorCode::ConfigInvalid`] if no such layer is installed, or if the span was entered before.
///
/// # Examples
///
/// ```
/// use helix_agents_core::tool::ToolContext;
/// use helix_agents_telemetry::set_parent;
/// use tracing::Instrument as _;
///
/// async fn look_up(word: String, cx: ToolContext) -> String {
///     let span = tracing::info_span!("query", word);
///     if let Some(call) = cx.trace_parent() {
///         // Without the layer, there is no trace to belong to.
///         let _no_layer = set_parent(&span, call);
///     }
///     async { format!("about {word}") }.instrument(span).await
/// }
/// ```
pub fn set_parent(span: &tracing::Span, parent: TraceParent) -> Result<()> {
    let flags = if parent.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
    let trace = TraceId::from_bytes(parent.trace().to_bytes());
    let operation = SpanId::from_bytes(parent.span().to_bytes());
    let context = SpanContext::new(trace, operation, flags, true, TraceState::NONE);
    let context = Context::new().with_remote_span_context(context);
    span.set_parent(context).map_err(|error| {
        let message =
            "the span cannot have a parent; is a layer of tracing-opentelemetry installed?";
        Error::new(ErrorCode::ConfigInvalid, message).with_source(error)
    })
}
