//! What is configured, for people to see: never a key.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};

use super::{Provider, ProviderRegistry, unknown};
use crate::openai_chat::ServerProfile;

/// A provider as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// Its name: what comes before the colon in `provider:model`.
    pub name: String,
    /// Whether models that name no provider are its.
    pub is_default: bool,
    /// Its address, if the registry knows one.
    pub base_url: Option<String>,
    /// The model of calls that name none.
    pub default_model: Option<String>,
    /// Its key.
    pub key: ProviderKey,
    /// What it can do, if the registry knows.
    pub profile: Option<ServerProfile>,
}

/// How it stands with the key of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKey {
    /// None is configured: servers of one's own often want none.
    None,
    /// There is one.
    Set,
    /// This environment variable should hold it, and does not: calls will fail.
    Missing(String),
}

impl ProviderRegistry {
    /// The providers as they are configured, by name.
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
                    info.profile = Some(options.profile.clone());
                    if options.api_key.is_some() {
                        info.key = ProviderKey::Set;
                    }
                }
            }
            info
        };
        self.providers.iter().map(describe).collect()
    }

    /// Asks a provider for its models: whether it answers, and takes the key. Waits for `patience`.
    ///
    /// # Errors
    /// [`ErrorCode::ModelUnknown`] if there is no such provider, [`ErrorCode::ConfigInvalid`] if
    /// its key is missing, [`ErrorCode::Unsupported`] if it keeps no list of models or is an adapter
    /// of another kind, and those of the provider as for a model call.
    pub async fn models(&self, provider: &str, patience: Duration) -> Result<Vec<String>> {
        match self.providers.get(provider) {
            Some(Provider::Ready { server: Some(server), .. }) => server.models(patience).await,
            Some(Provider::Ready { server: None, .. }) => {
                let message = format!("the provider `{provider}` keeps no list of models");
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
