//! Traces of agents, made from the log.
//!
//! A span is computed from recorded events by a pure function ([`spans`]). The process that appended an event exports its
//! span, so a replay or a repeated work item exports nothing again. The ids of traces and spans are digests of recorded ids. After a
//! crash, the process that continues a run exports its last spans again, with the same ids, and [`session_spans`] returns the same spans from any log later.
//!
//! [`Telemetry`] exports the spans of a process while its runs execute.
//!
//! # Examples
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use helix_agents_telemetry::Telemetry;
//!
//! # async fn example() -> helix_agents_core::error::Result<()> {
//! let telemetry = Telemetry::otlp().endpoint("http://127.0.0.1:4318").service_name("support").build()?;
//! // Pass `telemetry.clone()` to the `observer` method of a runtime's builder. When the runtime has shut down:
//! telemetry.shutdown(Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```

mod content;
mod conventions;
mod export;
mod json;
mod langfuse;
mod measured_store;
mod metrics;
mod options;
mod otlp;
#[cfg(feature = "tracing")]
mod own_spans;
mod sampling;
mod session_spans;
mod span;
mod spans;

pub use content::{Content, Field, MAX_ATTRIBUTE_BYTES};
pub use export::{Telemetry, TelemetryBuilder};
pub use json::otlp_json;
pub use measured_store::MeasuredStore;
pub use options::{Layout, SpanOptions};
pub use otlp::OtlpBuilder;
#[cfg(feature = "tracing")]
pub use own_spans::set_parent;
pub use session_spans::{session_spans, tree_spans};
pub use span::{Link, Span, SpanEvent, SpanKind, Value};
pub use spans::spans;
