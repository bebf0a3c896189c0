//! The export of spans.

use std::io;

use helix_agents::error::Error;
use helix_agents::finding::Finding;
use serde::Serialize;

use super::page::Page;
use crate::config_file::ConfigFile;
use crate::telemetry_settings::{ExporterKind, TelemetrySettings};

/// The telemetry section of the report.
#[derive(Debug, Default, Serialize)]
pub(super) struct Telemetry {
    /// Whether spans are exported.
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exporter: Option<ExporterKind>,
    /// The URL in helix.toml, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// Whether the receiver accepted an empty export.
    responds: bool,
    #[serde(skip)]
    finding: Option<Finding>,
}

impl Telemetry {
    /// Reads the configuration and sends an empty export. `is_readable` is `false` if the file has a problem that is
    /// reported elsewhere.
    pub(super) async fn check(is_readable: bool) -> Self {
        let settings = match ConfigFile::read() {
            Ok(file) => file.telemetry,
            Err(error) if is_readable => {
                let remedy = "correct helix.toml";
                let finding = Some(Finding::from_error(&error, remedy));
                return Self { finding, ..Self::default() };
            }
            Err(_) => None,
        };
        let Some(settings) = settings else { return Self::default() };
        let checked = check(&settings).await;
        Self {
            enabled: true,
            exporter: Some(settings.exporter),
            endpoint: settings.endpoint.as_deref().map(without_secrets),
            responds: checked.is_ok(),
            finding: checked.err().map(|error| {
                let remedy = "start the receiver, or correct `[telemetry]` in helix.toml; runs are not affected";
                let finding = Finding::advice(error.code().as_str(), error.message(), remedy);
                finding.with_subject("telemetry")
            }),
        }
    }

    /// Returns what may need attention.
    pub(super) fn findings(&self) -> impl Iterator<Item = Finding> {
        self.finding.clone().into_iter()
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Telemetry")?;
        let kind = match self.exporter {
            None => return page.row("export", "off: helix.toml has no table `[telemetry]`"),
            Some(ExporterKind::Otlp) => "OTLP",
            Some(ExporterKind::Langfuse) => "Langfuse",
        };
        let endpoint = match (&self.endpoint, self.exporter) {
            (Some(endpoint), _) => endpoint,
            (None, Some(ExporterKind::Langfuse)) => "the receiver in LANGFUSE_BASE_URL",
            (None, _) => "the receiver in OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318",
        };
        let state = if self.responds { "responds" } else { "does not respond: see below" };
        page.row("export", &format!("{kind}, {endpoint}: {state}"))
    }
}

async fn check(settings: &TelemetrySettings) -> Result<(), Error> {
    settings.builder()?.check().await
}

/// Removes the user and the query of a URL.
fn without_secrets(url: &str) -> String {
    let (url, _) = url.split_once('?').unwrap_or((url, ""));
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
            format!("{scheme}://{place}")
        }
        None => url.to_owned(),
    }
}
