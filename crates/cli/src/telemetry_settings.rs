//! The table `[telemetry]` of helix.toml.

use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::telemetry::{Content, Layout, OtlpBuilder, Telemetry};
use serde::{Deserialize, Deserializer, Serialize};

/// The options of the export. The file contains no secrets: OpenTelemetry's and Langfuse's environment variables hold them.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TelemetrySettings {
    /// The kind of receiver.
    pub(crate) exporter: ExporterKind,
    /// The URL of the receiver.
    pub(crate) endpoint: Option<String>,
    /// The name of the service.
    pub(crate) service_name: Option<String>,
    /// The assignment of turns to traces.
    pub(crate) layout: Option<LayoutSetting>,
    /// The share of traces that are exported, from 0 to 1.
    #[serde(deserialize_with = "ratio")]
    pub(crate) sample_ratio: Option<f64>,
    /// The content that spans contain.
    pub(crate) content: ContentSetting,
    /// Whether metrics are exported too.
    pub(crate) metrics: bool,
}

/// A kind of receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExporterKind {
    /// A receiver of OTLP over HTTP.
    #[default]
    Otlp,
    /// Langfuse, over OTLP.
    Langfuse,
}

/// A layout of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LayoutSetting {
    /// A trace for each turn.
    Turn,
    /// A trace for each root session.
    Session,
}

impl From<LayoutSetting> for Layout {
    fn from(setting: LayoutSetting) -> Self {
        match setting {
            LayoutSetting::Turn => Self::Turn,
            LayoutSetting::Session => Self::Session,
        }
    }
}

/// The content that spans contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContentSetting {
    /// No content.
    #[default]
    None,
    /// Messages, arguments, results and error messages.
    Recorded,
    /// Also the answers of humans, and the arguments that they approve.
    Human,
}

impl TelemetrySettings {
    /// Returns the builder of the export.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if a key of Langfuse is missing, or if options do not apply.
    pub(crate) fn builder(&self) -> Result<OtlpBuilder> {
        let message = match self.exporter {
            ExporterKind::Langfuse if self.endpoint.is_some() => {
                Some("`endpoint` does not apply to Langfuse; set LANGFUSE_BASE_URL instead")
            }
            ExporterKind::Langfuse if self.metrics => Some("Langfuse accepts no metrics"),
            _ => None,
        };
        if let Some(message) = message {
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        let mut builder = match self.exporter {
            ExporterKind::Otlp => Telemetry::otlp(),
            ExporterKind::Langfuse => Telemetry::langfuse()?,
        };
        if let Some(endpoint) = &self.endpoint {
            builder = builder.endpoint(endpoint);
        }
        if let Some(name) = &self.service_name {
            builder = builder.service_name(name);
        }
        if let Some(layout) = self.layout {
            builder = builder.layout(layout.into());
        }
        if let Some(ratio) = self.sample_ratio {
            builder = builder.sample_ratio(ratio);
        }
        builder = builder.metrics(self.metrics);
        Ok(match self.content {
            ContentSetting::None => builder,
            ContentSetting::Recorded => builder.content(Content::recorded()),
            ContentSetting::Human => builder.content(Content::recorded().human_content(true)),
        })
    }
}

/// Reads a share.
fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let ratio = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&ratio) {
        return Ok(Some(ratio));
    }
    Err(serde::de::Error::custom("`sample_ratio` is not between 0 and 1"))
}
