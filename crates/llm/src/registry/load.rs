//! Creation of a registry from the environment and `helix.toml`.

use std::path::Path;

use helix_agents_core::error::Result;

use super::config::{ConfigFile, Configured, MissingKey};
use super::known::KNOWN;
use super::{Access, CONFIG_FILE, Provider, ProviderRegistry, ProviderSource};
use crate::env;

impl ProviderRegistry {
    /// Creates a registry from the environment ([`env::ALL`]) and the file `helix.toml` in the
    /// current directory. Both are optional.
    ///
    /// An agent that names no model gets the one in [`env::HELIX_MODEL`], or otherwise that of the
    /// default provider. The default provider is the one that the file names, or the only one, or
    /// the first of `openai`, `anthropic`, `gemini` and the other providers of [`env::ALL`].
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`] if the file cannot be read, contains an unknown key or an invalid value, or names a
    /// default provider that is not configured, and if [`ModelServer::new`] rejects the options of a provider. A
    /// missing key is an error only when its provider is called.
    ///
    /// [`ConfigInvalid`]: helix_agents_core::error::ErrorCode::ConfigInvalid
    /// [`ModelServer::new`]: crate::ModelServer::new
    pub fn from_env() -> Result<Self> {
        let file = Path::new(CONFIG_FILE);
        let file = file.exists().then_some(file);
        Self::from_lookup(&|name| std::env::var(name).ok(), file)
    }

    /// Like [`from_env`](Self::from_env), with a given environment and file.
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`](helix_agents_core::error::ErrorCode::ConfigInvalid) in the same cases as
    /// [`from_env`](Self::from_env), and if the file does not exist.
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
        let found = KNOWN.iter().filter(|known| known.is_configured(&lookup));
        for known in found.filter(|known| !config.providers.contains_key(known.name)) {
            let mut options = known.options(&known.base_url(&lookup));
            let key = lookup(known.key.name);
            let variable = match (&key, known.base_url) {
                (None, Some(base_url)) => base_url,
                _ => known.key,
            };
            options.api_key = key.as_deref().map(Into::into);
            let source = ProviderSource::Variable(variable.name);
            registry = registry.with_server(options, source, Some(known.key.name))?;
        }
        for (name, provider) in &config.providers {
            let source = ProviderSource::File(file.unwrap_or(Path::new(CONFIG_FILE)).to_owned());
            let Configured { options, key_variable } = provider.options(name, &lookup)?;
            registry = match options {
                Ok(options) => registry.with_server(options, source, key_variable.as_deref())?,
                Err(MissingKey(variable)) => {
                    let provider = Provider {
                        access: Access::WithoutKey(variable.as_str().into()),
                        default_model: provider.model.as_deref().map(Into::into),
                        source,
                        key_variable: Some(variable.as_str().into()),
                    };
                    registry.insert(name, provider)
                }
            };
        }
        if let Some(name) = &config.default_provider {
            registry = registry.with_default(name)?;
        }
        if let Some(model) = lookup(env::HELIX_MODEL.name) {
            registry = registry.with_default_model(&model);
        } else if registry.default_name().is_none() {
            let known = KNOWN.iter().find(|known| registry.providers.contains_key(known.name));
            if let Some(known) = known {
                registry = registry.with_default_model(&format!("{}:", known.name));
            }
        }
        Ok(registry)
    }
}
