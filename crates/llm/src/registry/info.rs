//! The configured providers, without their keys.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};

use super::{Access, Provider, ProviderRegistry, unknown};
use crate::openai_chat::ServerProfile;

/// The configuration of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// The provider's name, which comes before the colon in `provider:model`.
    pub name: String,
    /// Whether the provider serves models that name no provider.
    pub is_default: bool,
    /// The place that configures the provider.
    pub source: ProviderSource,
    /// The base URL, if the registry knows it.
    pub base_url: Option<String>,
    /// The name of the API, as in `helix.toml`, if the registry knows it.
    pub api: Option<&'static str>,
    /// The default model, which is used by calls that name no model.
    pub default_model: Option<String>,
    /// The state of the provider's key.
    pub key: ProviderKey,
    /// The environment variable that holds the key or should hold it, if the key comes from a variable.
    pub key_variable: Option<String>,
    /// The capabilities of the provider, if the registry knows them.
    pub profile: Option<ServerProfile>,
}

/// The place that configures a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderSource {
    /// The program adds the provider.
    Program,
    /// This environment variable configures the provider.
    Variable(&'static str),
    /// This file configures the provider.
    File(PathBuf),
    /// A server on this port of this machine was found.
    Detected(u16),
}

impl fmt::Display for ProviderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("the program"),
            Self::Variable(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Detected(port) => write!(f, "port {port} of this machine"),
        }
    }
}

/// The state of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKey {
    /// No key is configured. Self-hosted servers often need none.
    None,
    /// The key is set, or access tokens are supplied.
    Set,
    /// This environment variable should contain the key, but is not set. Calls will fail.
    Missing(String),
}

impl ProviderRegistry {
    /// Returns the configured providers, sorted by name.
    #[must_use]
    pub fn providers(&self) -> Vec<ProviderInfo> {
        let default = self.default_name();
        let describe = |(name, provider): (&Arc<str>, &Provider)| {
            let mut info = ProviderInfo {
                name: name.to_string(),
                is_default: default.as_ref() == Some(name),
                source: provider.source.clone(),
                base_url: None,
                api: None,
                default_model: provider.default_model.as_deref().map(str::to_owned),
                key: ProviderKey::None,
                key_variable: provider.key_variable.as_deref().map(str::to_owned),
                profile: None,
            };
            match &provider.access {
                Access::WithoutKey(variable) => {
                    info.key = ProviderKey::Missing(variable.to_string());
                }
                Access::Adapter(_) => info.default_model = None,
                Access::Server(server) => {
                    let options = server.options();
                    info.base_url = Some(server.base_url());
                    info.api = Some(options.format.name());
                    info.profile = options.format.profile().cloned();
                    if server.has_credentials() {
                        info.key = ProviderKey::Set;
                    }
                }
            }
            info
        };
        self.providers.iter().map(describe).collect()
    }

    /// Returns the models of a provider. The call shows whether the provider responds and accepts
    /// the key. It waits for at most `timeout`.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ModelUnknown`] if there is no such provider,
    /// [`ErrorCode::ConfigInvalid`] if its key is missing, [`ErrorCode::Unsupported`] if it has no
    /// list of models or is a custom adapter, and the errors of a model call.
    pub async fn models(&self, provider: &str, timeout: Duration) -> Result<Vec<String>> {
        match self.providers.get(provider).map(|provider| &provider.access) {
            Some(Access::Server(server)) => server.models(timeout).await,
            Some(Access::Adapter(_)) => {
                let message = format!("the provider `{provider}` has no list of models");
                Err(Error::new(ErrorCode::Unsupported, message))
            }
            Some(Access::WithoutKey(variable)) => Err(super::without_key(provider, variable)),
            None => {
                Err(unknown(format!("no provider `{provider}` is configured ({})", self.list())))
            }
        }
    }
}
