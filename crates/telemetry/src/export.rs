//! The export of spans while runs execute.

mod convert;
mod metrics_task;
mod queue;
mod send;
mod task;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::RecordedEvent;
use helix_agents_core::observer::LogObserver;
use helix_agents_core::session::Session;
use helix_agents_core::store::StateStore;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::SpanExporter;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::measured_store::MeasuredStore;
use crate::metrics::Metrics;
use crate::options::SpanOptions;
use crate::otlp::OtlpBuilder;
use crate::spans::spans;
use metrics_task::MetricsExport;
use queue::{Counts, Queue};
use task::Task;

pub(crate) use convert::span_data;
pub(crate) use send::{export, failed, send};
pub(crate) use task::EXPORT_TIMEOUT;

/// The maximum number of queued spans.
const MAX_SPANS: usize = 8192;

/// The size of the spans that wait for their export, at most.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The default time between two exports of metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(60);

/// Exports the spans of the events that a process appends, and metrics. Cheap to clone.
///
/// A [`LogObserver`], so a runtime's builder takes it with `observer`. Spans wait in a bounded queue, which one task
/// exports every two seconds, or earlier if there are many. If the queue is full, new spans are dropped and counted. An
/// unavailable receiver never delays or fails a run.
///
/// # Durability
///
/// A crash loses the spans in the queue. The process that takes the run over exports the last ones again, with the same ids.
/// `session_spans` returns all of them from the log.
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

struct Inner {
    options: SpanOptions,
    queue: Queue,
    metrics: Option<(Arc<Metrics>, MetricsExport)>,
}

/// Creates the metrics and starts their export.
type StartMetrics = Box<dyn FnOnce(Resource, Arc<Counts>) -> (Arc<Metrics>, MetricsExport) + Send>;

/// Builds a [`Telemetry`] that uses an exporter of the OpenTelemetry SDK.
#[must_use]
pub struct TelemetryBuilder<E> {
    exporter: E,
    options: SpanOptions,
    service_name: Option<String>,
    max_spans: usize,
    metrics: Option<StartMetrics>,
}

impl Telemetry {
    /// Returns a builder of the export to an OTLP receiver over HTTP, such as an OpenTelemetry Collector.
    pub fn otlp() -> OtlpBuilder {
        OtlpBuilder::default()
    }

    /// Returns a builder of the export to [Langfuse](https://langfuse.com). Reads `LANGFUSE_PUBLIC_KEY`,
    /// `LANGFUSE_SECRET_KEY`, `LANGFUSE_BASE_URL`, `LANGFUSE_TRACING_ENVIRONMENT` and `LANGFUSE_RELEASE`. A root session is one
    /// trace ([`Layout::Session`](crate::Layout::Session)).
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if a key is missing.
    pub fn langfuse() -> Result<OtlpBuilder> {
        Self::langfuse_from(|name| std::env::var(name).ok())
    }

    /// Returns the builder of [`langfuse`](Self::langfuse). `variable` returns the value of a variable, instead of the environment.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if a key is missing.
    pub fn langfuse_from(variable: impl Fn(&str) -> Option<String>) -> Result<OtlpBuilder> {
        OtlpBuilder::langfuse(variable)
    }

    /// Returns a builder of the export with an exporter of the OpenTelemetry SDK. The exporter is responsible for retries.
    pub fn exporter<E: SpanExporter + 'static>(exporter: E) -> TelemetryBuilder<E> {
        TelemetryBuilder {
            exporter,
            options: SpanOptions::default(),
            service_name: None,
            max_spans: MAX_SPANS,
            metrics: None,
        }
    }

    /// Returns the options of the spans, for example for `session_spans`.
    #[must_use]
    pub fn span_options(&self) -> &SpanOptions {
        &self.0.options
    }

    /// Returns a store whose operations are measured, if metrics are exported. Pass it to `state_store` of a runtime's builder.
    #[must_use]
    pub fn measured_store(&self, store: Arc<dyn StateStore>) -> MeasuredStore {
        let metrics = self.0.metrics.as_ref().map(|(metrics, _)| Arc::clone(metrics));
        MeasuredStore::new(store, metrics)
    }

    /// Returns the number of spans in requests that the receiver has answered with success.
    #[must_use]
    pub fn exported(&self) -> u64 {
        self.0.queue.exported()
    }

    /// Returns the number of spans that were dropped because the queue was full or the export failed.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.queue.dropped()
    }

    /// Exports the spans in the queue, and the metrics. Returns once they are exported or dropped, which can take a minute for
    /// each batch if the receiver is unavailable.
    pub async fn flush(&self) {
        self.0.queue.flush().await;
        if let Some((_, export)) = &self.0.metrics {
            export.flush().await;
        }
    }

    /// Exports the spans in the queue and the metrics, and then exports no more spans. What is not exported within the grace
    /// period is dropped. The grace period is an hour at most. Call this after the runtimes have shut down.
    pub async fn shutdown(&self, grace: Duration) {
        let metrics = async {
            if let Some((_, export)) = &self.0.metrics {
                let _late = timeout(grace, export.flush()).await;
            }
        };
        tokio::join!(self.0.queue.shutdown(grace), metrics);
    }

    /// Queues the spans of recorded events.
    fn export(&self, session: &Session, events: &[RecordedEvent]) {
        let found = spans(session, events, &self.0.options);
        if !found.is_empty() {
            self.0.queue.push(found);
        }
    }
}

impl LogObserver for Telemetry {
    fn recorded(&self, session: &Session, events: &[RecordedEvent]) {
        self.export(session, events);
        if let Some((metrics, _)) = &self.0.metrics {
            metrics.record(session, events);
        }
    }

    fn recovered(&self, session: &Session, events: &[RecordedEvent]) {
        self.export(session, events);
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry")
            .field("options", &self.0.options)
            .field("exported", &self.exported())
            .field("dropped", &self.dropped())
            .finish()
    }
}

impl<E: SpanExporter + 'static> TelemetryBuilder<E> {
    /// Sets the options of spans.
    pub fn span_options(mut self, options: SpanOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the name of the service. Default: the environment variable `OTEL_SERVICE_NAME`.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = Some(name.into());
        self
    }

    /// Sets the maximum number of queued spans. Default: 8192.
    pub fn max_queued_spans(mut self, max_spans: usize) -> Self {
        self.max_spans = max_spans;
        self
    }

    /// Also exports metrics, with an exporter of the OpenTelemetry SDK. Default: no metrics.
    ///
    /// The interval is that of the environment variable `OTEL_METRIC_EXPORT_INTERVAL`, or a minute. The metrics of the interval
    /// in which a process crashes are lost.
    pub fn metrics<M: PushMetricExporter>(mut self, exporter: M) -> Self {
        self.metrics = Some(Box::new(move |resource, counts| {
            let dropped = move || counts.dropped();
            let metrics = Metrics::new(resource, exporter.temporality(), dropped);
            let metrics = Arc::new(metrics);
            let export = MetricsExport::start(Arc::clone(&metrics), exporter, metrics_interval());
            (metrics, export)
        }));
        self
    }

    /// Starts the export, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] outside of a tokio runtime.
    pub fn build(self) -> Result<Telemetry> {
        let Self { mut exporter, options, service_name, max_spans, metrics } = self;
        let runtime = Handle::try_current().map_err(|error| {
            let message = "telemetry is built outside of a tokio runtime";
            Error::new(ErrorCode::ConfigInvalid, message).with_source(error)
        })?;
        let resource = resource(service_name.as_deref());
        exporter.set_resource(&resource);
        let (queue, task_end) = Queue::new(max_spans, MAX_BYTES);
        runtime.spawn(Task::new(exporter, task_end).run());
        let metrics = metrics.map(|start| start(resource, queue.counts()));
        Ok(Telemetry(Arc::new(Inner { options, queue, metrics })))
    }
}

/// Returns the time between two exports of metrics.
fn metrics_interval() -> Duration {
    let millis =
        std::env::var("OTEL_METRIC_EXPORT_INTERVAL").ok().and_then(|text| text.parse().ok());
    millis.filter(|millis| *millis > 0).map_or(METRICS_INTERVAL, Duration::from_millis)
}

/// Returns the description of this service. The SDK reads `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
pub(crate) fn resource(service_name: Option<&str>) -> Resource {
    match service_name {
        Some(name) => Resource::builder().with_service_name(name.to_owned()).build(),
        None => Resource::builder().build(),
    }
}

impl<E> fmt::Debug for TelemetryBuilder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TelemetryBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
