//! The tables of helix.toml that this program reads. The provider registry reads the others.

use std::path::Path;

use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::providers::CONFIG_FILE;
use serde::Deserialize;

use crate::serve::settings::ServeSettings;
use crate::telemetry_settings::TelemetrySettings;

/// The tables. The provider registry checks the other keys of the file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConfigFile {
    /// The table `[serve]`.
    pub(crate) serve: ServeSettings,
    /// The table `[telemetry]`. Without it, nothing is exported.
    pub(crate) telemetry: Option<TelemetrySettings>,
}

impl ConfigFile {
    /// Reads the file in the current folder, if there is one.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] with the number of the line, but without its text.
    pub(crate) fn read() -> Result<Self> {
        let path = Path::new(CONFIG_FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(ErrorCode::ConfigInvalid, format!("{CONFIG_FILE} cannot be read: {error}"))
        })?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let message = format!("{CONFIG_FILE}, line {line}: {}", error.message());
            Error::new(ErrorCode::ConfigInvalid, message)
        })
    }
}

#[cfg(test)]
mod tests;
