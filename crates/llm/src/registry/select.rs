//! The choice of the model of a program.

use std::fmt;
use std::time::{Duration, Instant};

use helix_agents_core::error::{Error, ErrorCode, Result};

use super::{LocalServer, ProviderRegistry};
use crate::env;

/// The provider prefix of models on a detected local server.
const LOCAL: &str = "local:";

/// The interval between attempts to detect a local server.
const PAUSE: Duration = Duration::from_millis(500);

/// A model, the registry that serves it, and the reason why it was selected.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SelectedModel {
    /// The model's name, as `provider:model`.
    pub name: String,
    /// The registry that serves the model. It also has the other configured providers.
    pub registry: ProviderRegistry,
    /// The reason why the model was selected.
    pub source: ModelSource,
}

/// The reason why a model was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelSource {
    /// The caller names the model.
    Named,
    /// The environment variable `HELIX_MODEL` names the model.
    Variable,
    /// The model is the first configured one.
    Configured,
    /// A local server on this port serves the model.
    Detected(u16),
}

impl SelectedModel {
    /// Selects the model of a program: the one named by `name` or by `HELIX_MODEL`, else the default model of the
    /// [configured providers](ProviderRegistry::from_env), else that of a model server on this machine. Returns `None`
    /// if there is none.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ModelUnknown`] if no provider serves the named model, [`ErrorCode::ProviderUnavailable`] if
    /// it names a local server that does not respond, and the errors of [`ProviderRegistry::from_env`].
    pub async fn select(name: Option<&str>) -> Result<Option<Self>> {
        let (name, source) = match name {
            Some(name) => (Some(name.to_owned()), ModelSource::Named),
            None => (env::HELIX_MODEL.text(), ModelSource::Variable),
        };
        match name {
            Some(name) => Ok(Some(Self { source, ..Self::find(&name, Duration::ZERO).await? })),
            None => Self::first().await,
        }
    }

    /// Finds a model by its name. For a local server (`local:…`), waits up to `timeout` until it responds. The server
    /// may still be busy with the request of a crashed process.
    ///
    /// # Errors
    /// Returns the errors of [`select`](Self::select).
    pub async fn find(name: &str, timeout: Duration) -> Result<Self> {
        let registry = ProviderRegistry::from_env()?;
        let is_configured = registry.names().any(|provider| format!("{provider}:") == LOCAL);
        if !name.starts_with(LOCAL) || is_configured {
            return Self::of(registry, name, ModelSource::Named);
        }
        match server(timeout).await {
            Some(server) => Self::of(registry.with_local(&server)?, name, ModelSource::Named),
            None => {
                let message = "no model server responds on the well-known ports of this machine";
                let error = Error::new(ErrorCode::ProviderUnavailable, message);
                Err(error.with_context("model", name))
            }
        }
    }

    async fn first() -> Result<Option<Self>> {
        let registry = ProviderRegistry::from_env()?;
        if !registry.is_empty() {
            return Self::of(registry, "", ModelSource::Configured).map(Some);
        }
        match ProviderRegistry::detect_local().await {
            Some(server) => {
                let registry = registry.with_local(&server)?;
                Self::of(registry, "", ModelSource::Detected(server.port)).map(Some)
            }
            None => Ok(None),
        }
    }

    fn of(registry: ProviderRegistry, name: &str, source: ModelSource) -> Result<Self> {
        let model = match name {
            "" => registry.default_model()?,
            name => registry.model(name)?,
        };
        let name = model.to_string();
        Ok(Self { name, registry, source })
    }
}

/// Detects a model server on this machine, waiting up to `timeout`.
async fn server(timeout: Duration) -> Option<LocalServer> {
    let started = Instant::now();
    let mut server = ProviderRegistry::detect_local().await;
    if server.is_none() && !timeout.is_zero() {
        tracing::warn!(
            "no model server responds on this machine; it may be busy, waiting for up to {} s",
            timeout.as_secs()
        );
    }
    while server.is_none() && started.elapsed() < timeout {
        tokio::time::sleep(PAUSE).await;
        server = ProviderRegistry::detect_local().await;
    }
    server
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("named explicitly"),
            Self::Variable => write!(f, "set by {}", env::HELIX_MODEL.name),
            Self::Configured => f.write_str("the first configured model"),
            Self::Detected(port) => write!(f, "served on port {port} of this machine"),
        }
    }
}
