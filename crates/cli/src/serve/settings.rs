//! The table `[serve]` of helix.toml.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::runtime_kind::RuntimeKind;

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
