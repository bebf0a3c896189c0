//! Which model would answer, and how it stands with the servers behind it.

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

/// How long a server may take to name its models.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many of a server's models are named.
const MOST_MODELS: usize = 8;

/// What can be asked.
#[derive(Debug, Serialize)]
pub(super) struct Models {
    /// What answers where no model is named; none if that cannot be told.
    chosen: Option<Chosen>,
    providers: Vec<Provider>,
}

/// The model that answers where none is named.
#[derive(Debug, Serialize)]
struct Chosen {
    name: String,
    why: String,
}

/// A provider, and what came of asking it for its models.
#[derive(Debug, Serialize)]
struct Provider {
    name: String,
    is_default: bool,
    base_url: Option<String>,
    default_model: Option<String>,
    /// `set`, `none` or `missing`.
    key: &'static str,
    /// The variable that should hold the key and does not.
    key_variable: Option<String>,
    answers: bool,
    /// Why it does not.
    error: Option<Failed>,
    /// How many models it has.
    model_count: usize,
    /// The first of them.
    models: Vec<String>,
    traits: Vec<Trait>,
}

/// What becomes of a wish.
#[derive(Debug, Serialize)]
struct Trait {
    name: &'static str,
    honoured: bool,
    meaning: &'static str,
}

impl Models {
    pub(super) async fn look(configuration: &Configuration, findings: &mut Findings) -> Self {
        let Some(mut registry) = configuration.registry.clone() else {
            return Self { chosen: None, providers: Vec::new() };
        };
        if let Some(server) = ProviderRegistry::detect_local().await
            && !registry.names().any(|name| name == server.options.name)
            && let Ok(with_local) = registry.clone().with_local(&server)
        {
            registry = with_local;
        }
        let looks = registry.providers().into_iter().map(|info| Provider::look(&registry, info));
        let asked = join_all(looks).await;
        let chosen = Chosen::look(&asked, findings).await;
        let provider = chosen.as_ref().and_then(|it| it.name.split_once(':')).map(|it| it.0);
        for look in &asked {
            let is_chosen = provider == Some(&*look.provider.name);
            if let (Some(failed), false) = (&look.provider.error, is_chosen) {
                findings.advise(failed.code, &*failed.message, look.remedy);
            }
        }
        Self { chosen, providers: asked.into_iter().map(|look| look.provider).collect() }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Models")?;
        match &self.chosen {
            Some(chosen) => page.row("taken", &format!("{}: {}", chosen.name, chosen.why))?,
            None => page.row("taken", "none: see the problems below")?,
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

/// A provider that was asked, and what to do if it did not answer.
#[derive(Debug)]
struct Asked {
    provider: Provider,
    all_models: Vec<String>,
    remedy: &'static str,
}

impl Chosen {
    async fn look(asked: &[Asked], findings: &mut Findings) -> Option<Self> {
        let model = match Model::wanted(None).await {
            Ok(Some(model)) => model,
            Ok(None) => {
                findings.problem(
                    "no_model",
                    "no model is configured, and no model server answers on this machine; `helix \
                     demo` runs with a built-in script, agents of your own do not",
                    "set OPENAI_API_KEY or OPENAI_BASE_URL, describe a server in helix.toml, or \
                     start one on this machine",
                );
                return None;
            }
            Err(error) => {
                let ours = error.downcast_ref::<Error>();
                let code = ours.map_or(ErrorCode::Internal, Error::code);
                let message = ours.map_or_else(|| format!("{error:#}"), |it| it.message().into());
                findings.problem(
                    code.as_str(),
                    message,
                    "name a model as `provider:model` in HELIX_MODEL; or let `default_provider` in \
                     helix.toml name a provider that has a `model`",
                );
                return None;
            }
        };
        let config = LlmConfig { model: model.name().to_owned(), ..LlmConfig::default() };
        if let Err(error) = model.adapter().check(&config) {
            let code = error.code();
            findings.problem(code.as_str(), error.message(), remedy_of_provider(code));
        }
        Self::check_server(model.name(), asked, findings);
        Some(Self { name: model.name().to_owned(), why: model.why().to_string() })
    }

    /// Whether the server of the model answers, and has it.
    fn check_server(model: &str, asked: &[Asked], findings: &mut Findings) {
        let Some((provider, model)) = model.split_once(':') else { return };
        let Some(look) = asked.iter().find(|look| look.provider.name == provider) else { return };
        match &look.provider.error {
            // That is said already.
            Some(failed) if failed.code == ErrorCode::ConfigInvalid.as_str() => {}
            // Not every server keeps a list.
            Some(failed) if failed.code == ErrorCode::Unsupported.as_str() => {
                findings.advise(failed.code, &*failed.message, look.remedy);
            }
            Some(failed) => findings.problem(failed.code, &*failed.message, look.remedy),
            None if look.all_models.iter().any(|it| it == model) => {}
            None => findings.advise(
                "model_not_listed",
                format!("the provider `{provider}` does not list the model `{model}`"),
                "check its name, or name another one with --model or HELIX_MODEL",
            ),
        }
    }
}

impl Provider {
    async fn look(registry: &ProviderRegistry, info: ProviderInfo) -> Asked {
        let answer = registry.models(&info.name, PATIENCE).await;
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
            answers: error.as_ref().is_none_or(|it| it.code == ErrorCode::Unsupported.as_str()),
            error,
            model_count: all_models.len(),
            models: all_models.iter().take(MOST_MODELS).cloned().collect(),
            traits: traits.into_iter().map(Trait::from).collect(),
        };
        Asked { provider, all_models, remedy }
    }

    fn show(&self, page: &Page<'_>) -> io::Result<()> {
        let at = self.base_url.as_deref().unwrap_or("address not known");
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
                format!("answers; models: {}{more}", self.models.join(", "))
            }
        };
        page.row("", &answer)?;
        for it in &self.traits {
            page.answer(it.honoured, it.name, it.meaning)?;
        }
        Ok(())
    }
}

impl From<ServerTrait> for Trait {
    fn from(it: ServerTrait) -> Self {
        Self { name: it.name, honoured: it.honoured, meaning: it.meaning }
    }
}
