//! Creation of a registry from the environment and `helix.toml`.

use std::path::Path;

use helix_agents_core::error::Result;

use super::config::ConfigFile;
use super::{CONFIG_FILE, OPENAI_MODEL, OPENAI_URL, Provider, ProviderRegistry};
use crate::env;
use crate::openai_chat::OpenAiChatOptions;

impl ProviderRegistry {
    /// Creates a registry from the environment ([`env::ALL`]) and the file `helix.toml` in the
    /// current directory. Both are optional.
    ///
    /// An agent that names no model gets the one in [`env::HELIX_MODEL`], or otherwise that of the
    /// default provider. The default provider is the one that the file names, or the only one, or
    /// `openai`, whose model is `gpt-4.1-mini` unless the file sets another.
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`](helix_agents_core::error::ErrorCode::ConfigInvalid) if the file
    /// cannot be read or contains an unknown key.
    pub fn from_env() -> Result<Self> {
        let file = Path::new(CONFIG_FILE);
        let file = file.exists().then_some(file);
        Self::from_lookup(&|name| std::env::var(name).ok(), file)
    }

    /// Like [`from_env`](Self::from_env), with a given environment and file.
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`](helix_agents_core::error::ErrorCode::ConfigInvalid) if the file
    /// cannot be read or contains an unknown key.
    pub fn from_lookup(
        lookup: &dyn Fn(&str) -> Option<String>,
        file: Option<&Path>,
    ) -> Result<Self> {
        let lookup = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let config = match file {
            Some(path) => ConfigFile::read(path)?,
            None => ConfigFile::default(),
        };
        let mut registry = Self::new();
        if !config.providers.contains_key("openai") {
            let key = lookup(env::OPENAI_API_KEY.name);
            let base_url = lookup(env::OPENAI_BASE_URL.name);
            if key.is_some() || base_url.is_some() {
                let base_url = base_url.as_deref().unwrap_or(OPENAI_URL);
                let mut options =
                    OpenAiChatOptions::new("openai", base_url).with_default_model(OPENAI_MODEL);
                options.api_key = key.as_deref().map(Into::into);
                registry = registry.with_provider(options)?;
            }
        }
        for (name, provider) in &config.providers {
            registry = match provider.options(name, &lookup)? {
                Ok(mut options) => {
                    if name == "openai" {
                        options.default_model.get_or_insert_with(|| OPENAI_MODEL.to_owned());
                    }
                    registry.with_provider(options)?
                }
                Err(variable) => {
                    let provider = Provider::WithoutKey {
                        variable: variable.as_str().into(),
                        default_model: provider.model.as_deref().map(Into::into),
                    };
                    registry.providers.insert(name.as_str().into(), provider);
                    registry
                }
            };
        }
        if let Some(name) = &config.default_provider {
            registry = registry.with_default(name)?;
        }
        if let Some(model) = lookup(env::HELIX_MODEL.name) {
            registry = registry.with_default_model(&model);
        } else if registry.default_name().is_none() && registry.providers.contains_key("openai") {
            registry = registry.with_default_model("openai:");
        }
        Ok(registry)
    }
}
