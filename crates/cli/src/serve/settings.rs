//! The table `[serve]` of helix.toml.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::providers::CONFIG_FILE;
use serde::Deserialize;

use super::RuntimeKind;

/// The options of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServeSettings {
    /// The address to listen on.
    pub(crate) listen: Option<SocketAddr>,
    /// The file of tokens.
    pub(crate) tokens: Option<PathBuf>,
    /// The names of the server.
    pub(crate) hosts: Vec<String>,
    /// The origins whose pages may call the server.
    pub(crate) origins: Vec<String>,
    /// The runtime that executes runs.
    pub(crate) runtime: Option<RuntimeKind>,
    /// The server of the runtime's engine.
    pub(crate) engine: Option<String>,
    /// The time that runs get to stop, in seconds.
    pub(crate) grace: Option<u64>,
}

/// The part of the file that this program reads. The provider registry checks the other keys.
#[derive(Debug, Default, Deserialize)]
struct File {
    #[serde(default)]
    serve: ServeSettings,
}

impl ServeSettings {
    /// Reads the table of the file in the current folder, if there is one.
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
        let file: File = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let message = format!("{CONFIG_FILE}, line {line}: {}", error.message());
            Error::new(ErrorCode::ConfigInvalid, message)
        })?;
        Ok(file.serve)
    }
}

#[cfg(test)]
mod tests;
