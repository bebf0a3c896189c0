//! The providers that are found by their usual environment variables.

use std::time::Duration;

use crate::env::{self, EnvVar};
use crate::server::{ApiFormat, ModelServerOptions};

/// A provider with its usual environment variables.
#[derive(Debug)]
pub(crate) struct KnownProvider {
    pub(super) name: &'static str,
    /// The variable with the key.
    pub(super) key: EnvVar,
    /// The variable with another base URL, if the provider has one.
    pub(crate) base_url: Option<EnvVar>,
    pub(super) default_base_url: &'static str,
    pub(super) default_model: Option<&'static str>,
    /// The API at any base URL. `None` if the URL determines it.
    pub(super) format: Option<ApiFormat>,
    /// The time for which the provider may send nothing, if it is longer than usual.
    pub(super) silence: Option<Duration>,
}

/// The known providers. The first one whose key is set is the default.
pub(super) const KNOWN: [KnownProvider; 8] = [
    KnownProvider {
        base_url: Some(env::OPENAI_BASE_URL),
        default_model: Some("gpt-4.1-mini"),
        ..known("openai", env::OPENAI_API_KEY, "https://api.openai.com/v1")
    },
    KnownProvider {
        base_url: Some(env::ANTHROPIC_BASE_URL),
        default_model: Some("claude-haiku-4-5"),
        format: Some(ApiFormat::AnthropicMessages),
        ..known("anthropic", env::ANTHROPIC_API_KEY, "https://api.anthropic.com")
    },
    KnownProvider {
        default_model: Some("gemini-2.5-flash"),
        format: Some(ApiFormat::GeminiGenerate),
        ..known("gemini", env::GEMINI_API_KEY, "https://generativelanguage.googleapis.com/v1beta")
    },
    KnownProvider {
        // Its Chat Completions API does not return reasoning.
        format: Some(ApiFormat::OpenAiResponses),
        // It may send nothing while it reasons.
        silence: Some(Duration::from_secs(900)),
        ..known("xai", env::XAI_API_KEY, "https://api.x.ai/v1")
    },
    known("groq", env::GROQ_API_KEY, "https://api.groq.com/openai/v1"),
    known("deepseek", env::DEEPSEEK_API_KEY, "https://api.deepseek.com/v1"),
    known("mistral", env::MISTRAL_API_KEY, "https://api.mistral.ai/v1"),
    known("openrouter", env::OPENROUTER_API_KEY, "https://openrouter.ai/api/v1"),
];

const fn known(name: &'static str, key: EnvVar, default_base_url: &'static str) -> KnownProvider {
    KnownProvider {
        name,
        key,
        base_url: None,
        default_base_url,
        default_model: None,
        format: None,
        silence: None,
    }
}

impl KnownProvider {
    /// Returns the known provider of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// Returns the base URL, which an environment variable may set.
    pub(super) fn base_url(&self, lookup: &dyn Fn(&str) -> Option<String>) -> String {
        let set = self.base_url.and_then(|variable| lookup(variable.name));
        set.unwrap_or_else(|| self.default_base_url.to_owned())
    }

    /// Returns the options of the provider at a base URL.
    pub(super) fn options(&self, base_url: &str) -> ModelServerOptions {
        let mut options = ModelServerOptions::new(self.name, base_url);
        options.default_model = self.default_model.map(Into::into);
        if let Some(format) = &self.format {
            options.format = format.clone();
        }
        if let Some(silence) = self.silence {
            options.timeouts = options.timeouts.with_first_byte(silence).with_read(silence);
        }
        options
    }

    /// Returns `true` if the environment configures the provider.
    pub(super) fn is_configured(&self, lookup: &dyn Fn(&str) -> Option<String>) -> bool {
        let variables = [Some(self.key), self.base_url].into_iter().flatten();
        variables.into_iter().any(|variable| lookup(variable.name).is_some())
    }
}
