//! The state of the configuration, of the default model and of the providers, and what needs attention.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use helix_agents_core::error::{Error, ErrorCode, ErrorRecord};
use helix_agents_core::finding::{Finding, Severity};
use helix_agents_core::llm::{LlmAdapter as _, LlmConfig};
use serde::Serialize;

use crate::env::EnvVar;
use crate::{
    CONFIG_FILE, ProviderInfo, ProviderKey, ProviderRegistry, SelectedModel, ServerCapability,
};

mod remedy;

/// The timeout of a request for the models of a provider.
const MODELS_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum number of providers that are checked at the same time. Most configurations have fewer providers, so
/// the slowest one determines the duration. The limit bounds the number of open connections.
const MAX_CHECKS: usize = 16;

/// The remedy if no default model can be selected.
const NAME_A_MODEL: &str = "set HELIX_MODEL to a model as `provider:model`, or `default_provider` in \
                            helix.toml to a provider that has a `model`";

/// The state of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VariableState {
    /// The name of the variable.
    pub name: &'static str,
    /// Whether the variable is set and not empty.
    pub is_set: bool,
    /// The value; `None` if it is not set or may be a secret.
    pub value: Option<String>,
    /// The purpose of the variable.
    pub doc: &'static str,
}

impl From<EnvVar> for VariableState {
    fn from(variable: EnvVar) -> Self {
        let value = variable.text();
        Self {
            name: variable.name,
            is_set: value.is_some(),
            value: value.filter(|_| !variable.is_secret),
            doc: variable.doc,
        }
    }
}

/// The state of `helix.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigFileState {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// Whether the file exists.
    pub found: bool,
}

/// The state of the configuration in the environment and in `helix.toml`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ConfigDiagnosis {
    /// The configuration file.
    pub file: ConfigFileState,
    /// The error if the configuration is invalid.
    pub error: Option<ErrorRecord>,
    /// The configured providers, if the configuration is valid.
    #[serde(skip)]
    pub registry: Option<ProviderRegistry>,
}

impl ConfigDiagnosis {
    /// Checks the environment and `helix.toml` in the current directory. Makes no requests.
    #[must_use]
    pub fn check() -> Self {
        let path = std::path::absolute(CONFIG_FILE).unwrap_or_else(|_| CONFIG_FILE.into());
        let file = ConfigFileState { found: path.exists(), path };
        match ProviderRegistry::from_env() {
            Ok(registry) => Self { file, error: None, registry: Some(registry) },
            Err(error) => Self { file, error: Some(error.record()), registry: None },
        }
    }

    /// Returns a problem if the configuration is invalid, and nothing otherwise.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let remedy = if self.file.found {
            "correct helix.toml, or the environment variables"
        } else {
            "correct the environment variables of the providers"
        };
        let problem =
            |error: &ErrorRecord| Finding::problem(error.code.clone(), &*error.message, remedy);
        self.error.iter().map(problem).collect()
    }
}

/// The default model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DefaultModel {
    /// The name, as `provider:model`.
    pub name: String,
    /// The reason why this model is the default.
    pub source: String,
}

/// The state of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProviderDiagnosis {
    /// The provider's name.
    pub name: String,
    /// Whether the provider is used for model names without a `provider:` prefix.
    pub is_default: bool,
    /// The place that configures the provider: a variable, a file, the program, or a port of this machine.
    pub source: String,
    /// The base URL, if the registry knows it.
    pub base_url: Option<String>,
    /// The name of the API, as in `helix.toml`, if the registry knows it.
    pub api: Option<&'static str>,
    /// The model used when a call specifies none.
    pub default_model: Option<String>,
    /// The state of the API key: `set`, `none` if it is not needed, or `missing`.
    pub key: &'static str,
    /// The variable that holds the key, or should hold it.
    pub key_variable: Option<String>,
    /// Whether the provider responds.
    pub responds: bool,
    /// The error if the provider does not list its models.
    pub error: Option<ErrorRecord>,
    /// The models that the provider lists.
    pub models: Vec<String>,
    /// The provider's handling of agent settings.
    pub capabilities: Vec<ServerCapability>,
}

/// The state of the default model and of the configured providers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ModelsDiagnosis {
    /// The default model; `None` if there is none or it cannot be determined.
    pub default_model: Option<DefaultModel>,
    /// The configured providers, and a server on this machine.
    pub providers: Vec<ProviderDiagnosis>,
    /// The problems of the default model that the other fields do not show.
    #[serde(skip)]
    problems: Vec<Finding>,
}

impl ModelsDiagnosis {
    /// Selects the default model, and requests the list of models from every provider of the registry
    /// and from a server on this machine. Makes no other requests.
    pub async fn check(registry: &ProviderRegistry) -> Self {
        let mut registry = registry.clone();
        if let Some(server) = ProviderRegistry::detect_local().await
            && !registry.names().any(|name| name == server.options.name)
            && let Ok(with_local) = registry.clone().with_local(&server)
        {
            registry = with_local;
        }
        let infos = registry.providers();
        let checks = infos.into_iter().map(|info| ProviderDiagnosis::check(&registry, info));
        let providers = stream::iter(checks).buffered(MAX_CHECKS).collect().await;
        let (default_model, problems) = match SelectedModel::select(None).await {
            Ok(Some(model)) => {
                let config = LlmConfig::new(model.name.clone());
                let problem = |error: Error| Finding::from_error(&error, remedy::of_check(&error));
                let problems = model.registry.check(&config).err().map(problem);
                let default_model =
                    DefaultModel { name: model.name, source: model.source.to_string() };
                (Some(default_model), problems.into_iter().collect())
            }
            Ok(None) => (None, vec![no_model()]),
            Err(error) => (None, vec![Finding::from_error(&error, NAME_A_MODEL)]),
        };
        Self { default_model, providers, problems }
    }

    /// Returns what needs attention: problems of the default model and its provider, and advice about
    /// the other providers.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let named = self.default_model.as_ref().and_then(|model| model.name.split_once(':'));
        let (name, model) = named.unwrap_or_default();
        let (default, others): (Vec<_>, Vec<_>) =
            self.providers.iter().partition(|provider| provider.name == name);
        let default = default.into_iter().filter_map(|provider| provider.finding_of_default(model));
        let others = others.into_iter().filter_map(|provider| provider.finding(Severity::Advice));
        self.problems.iter().cloned().chain(default).chain(others).collect()
    }
}

impl ProviderDiagnosis {
    async fn check(registry: &ProviderRegistry, info: ProviderInfo) -> Self {
        let listed = registry.models(&info.name, MODELS_TIMEOUT).await;
        let (models, error) = match listed {
            Ok(models) => (models, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let key = match info.key {
            ProviderKey::None => "none",
            ProviderKey::Set => "set",
            ProviderKey::Missing(_) => "missing",
        };
        Self {
            name: info.name,
            is_default: info.is_default,
            source: info.source.to_string(),
            base_url: info.base_url,
            api: info.api,
            default_model: info.default_model,
            key,
            key_variable: info.key_variable,
            responds: error.as_ref().is_none_or(|error| error.code() == ErrorCode::Unsupported),
            error: error.map(|error| error.record()),
            models,
            capabilities: info.profile.map(|profile| profile.capabilities()).unwrap_or_default(),
        }
    }

    /// Returns the finding about the error, if there is one.
    fn finding(&self, severity: Severity) -> Option<Finding> {
        let error = self.error.as_ref()?;
        let remedy = remedy::of_provider(self, error);
        let (code, message) = (error.code.clone(), &*error.message);
        Some(match severity {
            Severity::Problem => Finding::problem(code, message, remedy),
            _ => Finding::advice(code, message, remedy),
        })
    }

    /// Returns the finding if the provider of the default model does not respond or does not list the
    /// model.
    fn finding_of_default(&self, model: &str) -> Option<Finding> {
        match &self.error {
            // The check of the model reports this.
            Some(error) if error.is(ErrorCode::ConfigInvalid) => None,
            // Not every server can list its models.
            Some(error) if error.is(ErrorCode::Unsupported) => self.finding(Severity::Advice),
            Some(_) => self.finding(Severity::Problem),
            None if self.models.iter().any(|name| name == model) => None,
            None => Some(Finding::advice(
                "model_not_listed",
                format!("the provider `{}` does not list the model `{model}`", self.name),
                "check the name, or choose another model",
            )),
        }
    }
}

fn no_model() -> Finding {
    Finding::problem(
        "no_model",
        "no model is configured, and no model server responds on this machine",
        "set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, configure a server in \
         helix.toml, or start one on this machine",
    )
}

#[cfg(test)]
mod tests;
