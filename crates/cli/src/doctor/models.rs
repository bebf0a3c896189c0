//! Checks the default model and the configured providers.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::llm::LlmConfig;
use helix_agents::providers::{ProviderInfo, ProviderKey, ProviderRegistry, ServerTrait};
use serde::Serialize;

use super::configuration::Configuration;
use super::finding::{Failed, Findings, remedy_of_provider};
use super::page::Page;
use crate::model::Model;

/// The timeout of a request for a provider's models.
const MODELS_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum number of models listed per provider.
const MAX_MODELS: usize = 8;

/// The models section of the report.
#[derive(Debug, Serialize)]
pub(super) struct Models {
    /// The default model; `None` if there is none or it cannot be determined.
    chosen: Option<Chosen>,
    providers: Vec<Provider>,
}

/// The default model.
#[derive(Debug, Serialize)]
struct Chosen {
    name: String,
    why: String,
}

/// A provider and the result of a request for its models.
#[derive(Debug, Serialize)]
struct Provider {
    name: String,
    is_default: bool,
    base_url: Option<String>,
    default_model: Option<String>,
    /// `set`, `none` or `missing`.
    key: &'static str,
    /// The variable that should hold the key but is not set.
    key_variable: Option<String>,
    answers: bool,
    /// The error if the provider does not respond.
    error: Option<Failed>,
    /// The number of its models.
    model_count: usize,
    /// The first of its models.
    models: Vec<String>,
    traits: Vec<Trait>,
}

/// How the provider handles a setting.
#[derive(Debug, Serialize)]
struct Trait {
    name: &'static str,
    honoured: bool,
    meaning: &'static str,
}

impl Models {
    pub(super) async fn check(configuration: &Configuration, findings: &mut Findings) -> Self {
        let Some(mut registry) = configuration.registry.clone() else {
            return Self { chosen: None, providers: Vec::new() };
        };
        if let Some(server) = ProviderRegistry::detect_local().await
            && !registry.names().any(|name| name == server.options.name)
            && let Ok(with_local) = registry.clone().with_local(&server)
        {
            registry = with_local;
        }
        let checks = registry.providers().into_iter().map(|info| Provider::check(&registry, info));
        let checked = join_all(checks).await;
        let chosen = Chosen::check(&checked, findings).await;
        let provider =
            chosen.as_ref().and_then(|chosen| chosen.name.split_once(':')).map(|parts| parts.0);
        for checked in &checked {
            let is_chosen = provider == Some(&*checked.provider.name);
            if let (Some(failed), false) = (&checked.provider.error, is_chosen) {
                findings.advise(failed.code, &*failed.message, checked.remedy);
            }
        }
        Self { chosen, providers: checked.into_iter().map(|checked| checked.provider).collect() }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Models")?;
        match &self.chosen {
            Some(chosen) => page.row("default", &format!("{}: {}", chosen.name, chosen.why))?,
            None => page.row("default", "none: see the problems below")?,
        }
        for provider in &self.providers {
            provider.show(page)?;
        }
        if self.providers.is_empty() {
            page.row("providers", "none")?;
        }
        Ok(())
    }
}

/// A provider, its models and the remedy if it does not respond.
#[derive(Debug)]
struct CheckedProvider {
    provider: Provider,
    all_models: Vec<String>,
    remedy: &'static str,
}

impl Chosen {
    async fn check(checked: &[CheckedProvider], findings: &mut Findings) -> Option<Self> {
        let model = match Model::select(None).await {
            Ok(Some(model)) => model,
            Ok(None) => {
                findings.problem(
                    "no_model",
                    "no model is configured, and no model server responds on this machine; `helix \
                     demo` runs with a built-in script, but other agents need a model",
                    "set OPENAI_API_KEY or OPENAI_BASE_URL, configure a server in helix.toml, or \
                     start one on this machine",
                );
                return None;
            }
            Err(error) => {
                let known = error.downcast_ref::<Error>();
                let code = known.map_or(ErrorCode::Internal, Error::code);
                let message =
                    known.map_or_else(|| format!("{error:#}"), |error| error.message().into());
                findings.problem(
                    code.as_str(),
                    message,
                    "set HELIX_MODEL to a model as `provider:model`, or `default_provider` in \
                     helix.toml to a provider that has a `model`",
                );
                return None;
            }
        };
        let config = LlmConfig { model: model.name().to_owned(), ..LlmConfig::default() };
        if let Err(error) = model.adapter().check(&config) {
            let code = error.code();
            findings.problem(code.as_str(), error.message(), remedy_of_provider(code));
        }
        Self::check_server(model.name(), checked, findings);
        Some(Self { name: model.name().to_owned(), why: model.source().to_string() })
    }

    /// Checks that the model's provider responds and lists the model.
    fn check_server(model: &str, checked: &[CheckedProvider], findings: &mut Findings) {
        let Some((provider, model)) = model.split_once(':') else { return };
        let Some(checked) = checked.iter().find(|checked| checked.provider.name == provider) else {
            return;
        };
        match &checked.provider.error {
            // Already reported.
            Some(failed) if failed.code == ErrorCode::ConfigInvalid.as_str() => {}
            // Not every server can list its models.
            Some(failed) if failed.code == ErrorCode::Unsupported.as_str() => {
                findings.advise(failed.code, &*failed.message, checked.remedy);
            }
            Some(failed) => findings.problem(failed.code, &*failed.message, checked.remedy),
            None if checked.all_models.iter().any(|name| name == model) => {}
            None => findings.advise(
                "model_not_listed",
                format!("the provider `{provider}` does not list the model `{model}`"),
                "check the name, or choose another model with --model or HELIX_MODEL",
            ),
        }
    }
}

impl Provider {
    async fn check(registry: &ProviderRegistry, info: ProviderInfo) -> CheckedProvider {
        let answer = registry.models(&info.name, MODELS_TIMEOUT).await;
        let remedy = answer.as_ref().map_or_else(|error| remedy_of_provider(error.code()), |_| "");
        let error = answer.as_ref().err().map(Failed::from);
        let all_models = answer.unwrap_or_default();
        let (key, key_variable) = match info.key {
            ProviderKey::None => ("none", None),
            ProviderKey::Set => ("set", None),
            ProviderKey::Missing(variable) => ("missing", Some(variable)),
        };
        let traits = info.profile.map(|profile| profile.traits()).unwrap_or_default();
        let provider = Self {
            name: info.name,
            is_default: info.is_default,
            base_url: info.base_url,
            default_model: info.default_model,
            key,
            key_variable,
            answers: error
                .as_ref()
                .is_none_or(|failed| failed.code == ErrorCode::Unsupported.as_str()),
            error,
            model_count: all_models.len(),
            models: all_models.iter().take(MAX_MODELS).cloned().collect(),
            traits: traits.into_iter().map(Trait::from).collect(),
        };
        CheckedProvider { provider, all_models, remedy }
    }

    fn show(&self, page: &Page<'_>) -> io::Result<()> {
        let at = self.base_url.as_deref().unwrap_or("unknown URL");
        let key = match &self.key_variable {
            Some(variable) => format!("key missing: set {variable}"),
            None if self.key == "set" => "with a key".to_owned(),
            None => "without a key".to_owned(),
        };
        let default = if self.is_default { ", the default" } else { "" };
        page.row(&self.name, &format!("{at}, {key}{default}"))?;
        let answer = match &self.error {
            Some(failed) => failed.message.clone(),
            None => {
                let more = if self.model_count > self.models.len() { ", …" } else { "" };
                format!("responds; models: {}{more}", self.models.join(", "))
            }
        };
        page.row("", &answer)?;
        for server_trait in &self.traits {
            page.answer(server_trait.honoured, server_trait.name, server_trait.meaning)?;
        }
        Ok(())
    }
}

impl From<ServerTrait> for Trait {
    fn from(value: ServerTrait) -> Self {
        Self { name: value.name, honoured: value.honoured, meaning: value.meaning }
    }
}
