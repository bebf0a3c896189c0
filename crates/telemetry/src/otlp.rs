//! The export to an OTLP receiver over HTTP.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helix_agents_core::error::{Error, ErrorCode, Result};
use opentelemetry_otlp::{
    Compression, MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _,
};
use opentelemetry_sdk::trace::SpanExporter as _;

use crate::content::Content;
use crate::export::{EXPORT_TIMEOUT, Telemetry, export, failed, resource, send};
use crate::langfuse::Langfuse;
use crate::options::{Layout, SpanOptions};
use crate::span::Span;

/// The path of spans at a receiver.
const PATH: &str = "/v1/traces";

/// The path of metrics at a receiver.
const METRICS_PATH: &str = "/v1/metrics";

/// The time limit of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a [`Telemetry`] that exports to an OTLP receiver over HTTP, with protobuf bodies. A batch that the receiver
/// cannot take now (429, 502, 503, 504, or no connection) is sent again for at most a minute. A batch that it refuses is dropped.
///
/// Options that are not set come from OpenTelemetry's environment variables: `OTEL_EXPORTER_OTLP_ENDPOINT` (default:
/// `http://localhost:4318`), `OTEL_EXPORTER_OTLP_HEADERS` and their variants for traces, and `OTEL_SERVICE_NAME`.
#[derive(Clone, Default)]
#[must_use]
pub struct OtlpBuilder {
    endpoint: Option<String>,
    headers: HashMap<String, String>,
    service_name: Option<String>,
    is_uncompressed: bool,
    has_metrics: bool,
    options: SpanOptions,
}

impl OtlpBuilder {
    /// Creates the preset for Langfuse from its environment variables.
    pub(crate) fn langfuse(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let required = |name: &str| {
            variable(name).ok_or_else(|| {
                let message = format!("the environment variable {name} is not set");
                Error::new(ErrorCode::ConfigInvalid, message)
            })
        };
        let keys =
            format!("{}:{}", required("LANGFUSE_PUBLIC_KEY")?, required("LANGFUSE_SECRET_KEY")?);
        let url = variable("LANGFUSE_BASE_URL").or_else(|| variable("LANGFUSE_HOST"));
        let url = url.unwrap_or_else(|| "https://cloud.langfuse.com".to_owned());
        let settings = Langfuse {
            environment: variable("LANGFUSE_TRACING_ENVIRONMENT"),
            release: variable("LANGFUSE_RELEASE"),
        };
        let options = SpanOptions::default().layout(Layout::Session).langfuse(settings);
        Ok(Self { options, ..Self::default() }
            .endpoint(format!("{}/api/public/otel", url.trim_end_matches('/')))
            .header("authorization", format!("Basic {}", STANDARD.encode(keys)))
            .header("x-langfuse-ingestion-version", "4"))
    }

    /// Sets the URL of the receiver. `/v1/traces` is appended to its path, unless the path ends with it.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// Adds a header to each request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets the name of the service. Default: the environment variable `OTEL_SERVICE_NAME`.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = Some(name.into());
        self
    }

    /// Sets whether bodies are compressed with gzip. Default: `true`.
    pub fn compression(mut self, compresses: bool) -> Self {
        self.is_uncompressed = !compresses;
        self
    }

    /// Sets the layout. Default: [`Layout::Turn`], for Langfuse [`Layout::Session`].
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options = self.options.layout(layout);
        self
    }

    /// Sets the recorded content. Default: none.
    pub fn content(mut self, content: Content) -> Self {
        self.options = self.options.content(content);
        self
    }

    /// Sets the share of traces that are exported, as [`SpanOptions::sample_ratio`] does.
    pub fn sample_ratio(mut self, ratio: f64) -> Self {
        self.options = self.options.sample_ratio(ratio);
        self
    }

    /// Sets whether metrics are exported too, to `/v1/metrics` of the receiver. Default: `false`. Langfuse accepts none.
    pub fn metrics(mut self, exports: bool) -> Self {
        self.has_metrics = exports;
        self
    }

    /// Starts the export, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] outside of a tokio runtime, or if the URL or a header is invalid. Also returns it if
    /// a variable of the environment would replace headers of this builder.
    pub fn build(self) -> Result<Telemetry> {
        let mut builder =
            Telemetry::exporter(self.exporter(EXPORT_TIMEOUT)?).span_options(self.options.clone());
        if self.has_metrics {
            builder = builder.metrics(self.metric_exporter()?);
        }
        if let Some(name) = self.service_name {
            builder = builder.service_name(name);
        }
        builder.build()
    }

    /// Returns the options of the spans, for example for `session_spans`.
    #[must_use]
    pub fn span_options(&self) -> &SpanOptions {
        &self.options
    }

    /// Sends spans, for example those of `session_spans`, and returns once the receiver has answered all requests with success.
    /// A receiver that distinguishes spans by id keeps one of each, also if they are sent again.
    ///
    /// # Errors
    /// Returns [`ErrorCode::TelemetryFailed`] if the receiver refuses a batch or is unavailable for a minute. The batches before
    /// it were accepted. Otherwise returns the errors of [`build`](Self::build).
    pub async fn send(&self, spans: Vec<Span>) -> Result<()> {
        let mut exporter = self.exporter(EXPORT_TIMEOUT)?;
        exporter.set_resource(&resource(self.service_name.as_deref()));
        send(&exporter, spans, EXPORT_TIMEOUT).await
    }

    /// Sends an empty batch to check the URL, the headers and the receiver.
    ///
    /// # Errors
    /// Returns [`ErrorCode::TelemetryFailed`] if the receiver refuses the batch or does not answer within five seconds.
    /// Otherwise returns the errors of [`build`](Self::build).
    pub async fn check(&self) -> Result<()> {
        let exporter = self.exporter(CHECK_TIMEOUT)?;
        export(&exporter, Vec::new(), CHECK_TIMEOUT).await.map_err(|reason| failed(&reason))
    }

    /// Creates the exporter of metrics.
    fn metric_exporter(&self) -> Result<MetricExporter> {
        let mut exporter = MetricExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_headers(self.headers.clone().into_iter().map(escaped).collect());
        if !self.is_uncompressed {
            exporter = exporter.with_compression(Compression::Gzip);
        }
        if let Some(endpoint) = &self.endpoint {
            exporter = exporter.with_endpoint(url_of(endpoint, METRICS_PATH));
        }
        exporter.build().map_err(|error| {
            let message = "the exporter of metrics could not be created";
            Error::new(ErrorCode::ConfigInvalid, message).with_source(error)
        })
    }

    /// Creates the exporter. It retries until the time limit.
    fn exporter(&self, limit: Duration) -> Result<SpanExporter> {
        check_headers(&self.headers, |name| std::env::var_os(name).is_some())?;
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(limit)
            .with_retry_policy(RetryPolicy::recommended().with_max_retries(usize::MAX))
            // The exporter decodes the values as URLs.
            .with_headers(self.headers.clone().into_iter().map(escaped).collect());
        if !self.is_uncompressed {
            exporter = exporter.with_compression(Compression::Gzip);
        }
        if let Some(endpoint) = &self.endpoint {
            exporter = exporter.with_endpoint(url_of(endpoint, PATH));
        }
        exporter.build().map_err(|error| {
            let message = "the exporter of spans could not be created";
            Error::new(ErrorCode::ConfigInvalid, message).with_source(error)
        })
    }
}

/// Returns the URL of a signal at a receiver. The query, if there is one, stays behind the path.
fn url_of(endpoint: &str, path: &str) -> String {
    let (base, query) = match endpoint.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (endpoint, String::new()),
    };
    let base = base.trim_end_matches('/');
    // The URL may be that of spans.
    let base = base.strip_suffix(PATH).unwrap_or(base);
    format!("{base}{path}{query}")
}

/// The variables whose headers the exporter prefers to those of its builder.
const HEADER_VARIABLES: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
];

/// Rejects headers that the exporter would skip, and variables that would replace them: the key of another receiver must not be
/// sent to this one.
fn check_headers(headers: &HashMap<String, String>, is_set: impl Fn(&str) -> bool) -> Result<()> {
    if headers.is_empty() {
        return Ok(());
    }
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let is_value = |value: &str| value.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    if let Some((name, _)) = headers.iter().find(|(name, value)| !is_name(name) || !is_value(value))
    {
        let message = format!("the header `{}` is invalid", name.escape_debug());
        return Err(Error::new(ErrorCode::ConfigInvalid, message));
    }
    if let Some(variable) = HEADER_VARIABLES.iter().find(|name| is_set(name)) {
        let message = format!(
            "the environment variable {variable} would replace headers of this exporter; unset it, or set no headers here"
        );
        return Err(Error::new(ErrorCode::ConfigInvalid, message));
    }
    Ok(())
}

fn escaped((name, value): (String, String)) -> (String, String) {
    (name, value.replace('%', "%25"))
}

impl fmt::Debug for OtlpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and URLs may have secrets.
        f.debug_struct("OtlpBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
