//! The configured providers, without their keys.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};

use super::{Provider, ProviderRegistry, unknown};
use crate::openai_chat::ServerProfile;

/// The configuration of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// The provider's name, which comes before the colon in `provider:model`.
    pub name: String,
    /// Whether the provider serves models that name no provider.
    pub is_default: bool,
    /// The base URL, if the registry knows it.
    pub base_url: Option<String>,
    /// The default model, which is used by calls that name no model.
    pub default_model: Option<String>,
    /// The state of the provider's key.
    pub key: ProviderKey,
    /// The capabilities of the provider, if the registry knows them.
    pub profile: Option<ServerProfile>,
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
                base_url: None,
                default_model: None,
                key: ProviderKey::None,
                profile: None,
            };
            match provider {
                Provider::WithoutKey { variable, default_model } => {
                    info.default_model = default_model.as_deref().map(str::to_owned);
                    info.key = ProviderKey::Missing(variable.to_string());
                }
                Provider::Ready { server: None, .. } => {}
                Provider::Ready { server: Some(server), .. } => {
                    let options = server.options();
                    info.base_url = Some(server.base_url());
                    info.default_model.clone_from(&options.default_model);
                    info.profile = options.format.profile().cloned();
                    if options.api_key.is_some() || options.authenticator.is_some() {
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
        match self.providers.get(provider) {
            Some(Provider::Ready { server: Some(server), .. }) => server.models(timeout).await,
            Some(Provider::Ready { server: None, .. }) => {
                let message = format!("the provider `{provider}` has no list of models");
                Err(Error::new(ErrorCode::Unsupported, message))
            }
            Some(Provider::WithoutKey { variable, .. }) => {
                Err(super::without_key(provider, variable))
            }
            None => {
                Err(unknown(format!("no provider `{provider}` is configured ({})", self.list())))
            }
        }
    }
}
