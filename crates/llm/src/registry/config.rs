//! `helix.toml`: the providers that a user configures.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::known::KnownProvider;
use crate::capability::ModelCapabilities;
use crate::http::Timeouts;
use crate::openai_chat::{MaxTokensField, OutputFormat, ServerProfile};
use crate::server::{ApiFormat, ModelServerOptions};

mod capabilities;
mod hosting;

use hosting::HostingConfig;

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigFile {
    #[serde(default)]
    pub(super) default_provider: Option<String>,
    #[serde(default)]
    pub(super) providers: BTreeMap<String, ProviderConfig>,
    /// The options of the program that serves agents, which that program reads.
    #[serde(default, rename = "serve")]
    _serve: IgnoredAny,
    /// The options of the export of spans, which that program reads.
    #[serde(default, rename = "telemetry")]
    _telemetry: IgnoredAny,
}

/// One provider. The file contains only the names of the variables that hold keys, never keys.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProviderConfig {
    base_url: Option<String>,
    hosting: Option<HostingConfig>,
    api_key_env: Option<String>,
    pub(super) model: Option<String>,
    allow_http: bool,
    api: Option<Api>,
    server: Option<ServerKind>,
    stream: Option<bool>,
    stream_tool_choice: Option<bool>,
    stream_usage: Option<bool>,
    finish_reasons: Option<bool>,
    max_tokens_field: Option<MaxTokensField>,
    empty_content: Option<bool>,
    reasoning_content: Option<bool>,
    output_format: Option<OutputFormat>,
    explicit_tool_choice: Option<bool>,
    strict_tools: Option<bool>,
    top_k: Option<bool>,
    first_byte_timeout_ms: Option<u64>,
    read_timeout_ms: Option<u64>,
    models: BTreeMap<String, ModelCapabilities>,
}

/// The options of a provider.
#[derive(Debug)]
pub(super) struct Configured {
    pub(super) options: Result<ModelServerOptions, MissingKey>,
    /// The variable that holds the key, if the key comes from a variable.
    pub(super) key_variable: Option<String>,
}

/// The name of the variable that should hold the key of a provider, but is not set.
#[derive(Debug)]
pub(super) struct MissingKey(pub(super) String);

/// Profiles by name. The other options change individual capabilities.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ServerKind {
    Openai,
    Compatible,
    LlamaCppPython,
}

/// The APIs by name.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Api {
    ChatCompletions,
    OpenaiResponses,
    AnthropicMessages,
    BedrockConverse,
    GeminiGenerate,
}

impl Api {
    /// Returns the format of a server at an address. `is_hosted` is `true` for a host of OpenAI's models.
    fn format(self, base_url: &str, is_hosted: bool) -> ApiFormat {
        match self {
            Self::ChatCompletions if is_hosted => {
                ApiFormat::ChatCompletions(ServerProfile::openai())
            }
            Self::ChatCompletions => ApiFormat::chat_of_address(base_url),
            Self::OpenaiResponses => ApiFormat::OpenAiResponses,
            Self::AnthropicMessages => ApiFormat::AnthropicMessages,
            Self::BedrockConverse => ApiFormat::BedrockConverse,
            Self::GeminiGenerate => ApiFormat::GeminiGenerate,
        }
    }
}

impl ConfigFile {
    /// Reads the file.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] with the number of the line, but without its text.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let file = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(ErrorCode::ConfigInvalid, format!("{file} cannot be read"))
                .with_source(error)
        })?;
        let mut config: Self = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |text| text.matches('\n').count() + 1);
            Error::new(
                ErrorCode::ConfigInvalid,
                format!("{file}, line {line}: {}{}", error.message(), hint(error.message())),
            )
        })?;
        let models =
            config.providers.iter_mut().map(|(name, provider)| (name, &mut provider.models));
        capabilities::complete(models, &text)?;
        Ok(config)
    }
}

/// The minimum similarity of a known key for a suggestion.
const NEAR: f64 = 0.75;

/// Returns a suggestion if the parser reports an unknown key and lists the known ones.
fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(given) = quoted.next().filter(|_| message.starts_with("unknown field")) else {
        return String::new();
    };
    let given = given.to_lowercase().replace('-', "_");
    let near = quoted
        .map(|key| (strsim::jaro_winkler(&given, key), key))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    near.map_or_else(String::new, |(_, key)| format!("; did you mean `{key}`?"))
}

impl ProviderConfig {
    /// Returns the options of the provider. `lookup` returns the values of environment variables.
    pub(super) fn options(
        &self,
        name: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Configured> {
        let known = KnownProvider::find(name).filter(|_| self.hosting.is_none());
        let mut options = self.address(name, known, lookup)?;
        self.set_api(&mut options)?;
        if let Some(model) = &self.model {
            options.default_model = Some(model.clone());
        }
        options.allow_http = self.allow_http;
        options.model_capabilities.clone_from(&self.models);
        self.set_timeouts(&mut options.timeouts);
        let implied = known.map(|known| known.key.name);
        match (self.api_key_env.as_deref().or(implied), &self.hosting) {
            (Some(variable), _) => {
                let key_variable = Some(variable.to_owned());
                let options = match lookup(variable) {
                    Some(key) => Ok(options.with_api_key(key.as_str())),
                    None if self.api_key_env.is_some() => Err(MissingKey(variable.to_owned())),
                    None => Ok(options),
                };
                Ok(Configured { options, key_variable })
            }
            (None, Some(hosting)) => hosting.with_credentials(options, lookup),
            (None, None) => Ok(Configured { options: Ok(options), key_variable: None }),
        }
    }

    /// Returns the options of the server at the address of the provider.
    fn address(
        &self,
        name: &str,
        known: Option<&KnownProvider>,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ModelServerOptions> {
        if let Some(hosting) = &self.hosting {
            let mut options = hosting.options(name, lookup)?;
            if let Some(base_url) = &self.base_url {
                options.base_url.clone_from(base_url);
            }
            return Ok(options);
        }
        match (&self.base_url, known) {
            (Some(url), Some(known)) => Ok(known.options(url)),
            (None, Some(known)) => Ok(known.options(&known.base_url(lookup))),
            (Some(url), None) => Ok(ModelServerOptions::new(name, url)),
            (None, None) => {
                Err(invalid(format!("the provider `{name}` has neither `base_url` nor `hosting`")))
            }
        }
    }

    /// Sets the API, and the profile of Chat Completions.
    fn set_api(&self, options: &mut ModelServerOptions) -> Result<()> {
        let name = &options.name;
        let is_hosted = self.hosting.is_some();
        // Of the hosts, only `azure_openai` and `bedrock_openai` serve two APIs.
        let has_one_api = is_hosted && options.format != ApiFormat::OpenAiResponses;
        if let Some(api) = self.api {
            let is_of_openai = matches!(api, Api::ChatCompletions | Api::OpenaiResponses);
            if has_one_api || (is_hosted && !is_of_openai) {
                return Err(invalid(format!(
                    "the provider `{name}` sets `api`, but its host serves these models through one API only"
                )));
            }
            options.format = api.format(&options.base_url, is_hosted);
        }
        match (&mut options.format, self.profile_key()) {
            (ApiFormat::ChatCompletions(profile), _) => *profile = self.profile(profile.clone()),
            (_, Some(key)) => {
                let choice = if has_one_api { "" } else { ", or set `api = \"chat_completions\"`" };
                return Err(invalid(format!(
                    "the provider `{name}` sets `{key}`, which applies only to Chat Completions; remove the key{choice}"
                )));
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// Returns a key that is set and applies only to Chat Completions.
    fn profile_key(&self) -> Option<&'static str> {
        let keys = [
            ("server", self.server.is_some()),
            ("stream", self.stream.is_some()),
            ("stream_tool_choice", self.stream_tool_choice.is_some()),
            ("stream_usage", self.stream_usage.is_some()),
            ("finish_reasons", self.finish_reasons.is_some()),
            ("max_tokens_field", self.max_tokens_field.is_some()),
            ("empty_content", self.empty_content.is_some()),
            ("reasoning_content", self.reasoning_content.is_some()),
            ("output_format", self.output_format.is_some()),
            ("explicit_tool_choice", self.explicit_tool_choice.is_some()),
            ("strict_tools", self.strict_tools.is_some()),
            ("top_k", self.top_k.is_some()),
        ];
        keys.into_iter().find_map(|(key, is_set)| is_set.then_some(key))
    }

    fn profile(&self, of_address: ServerProfile) -> ServerProfile {
        let base = match self.server {
            None => of_address,
            Some(ServerKind::Openai) => ServerProfile::openai(),
            Some(ServerKind::Compatible) => ServerProfile::compatible(),
            Some(ServerKind::LlamaCppPython) => ServerProfile::llama_cpp_python(),
        };
        let mut profile = base;
        set(&mut profile.stream, self.stream);
        set(&mut profile.stream_tool_choice, self.stream_tool_choice);
        set(&mut profile.stream_usage, self.stream_usage);
        set(&mut profile.finish_reasons, self.finish_reasons);
        set(&mut profile.max_tokens_field, self.max_tokens_field);
        set(&mut profile.empty_content, self.empty_content);
        set(&mut profile.reasoning_content, self.reasoning_content);
        set(&mut profile.output_format, self.output_format);
        set(&mut profile.explicit_tool_choice, self.explicit_tool_choice);
        set(&mut profile.strict_tools, self.strict_tools);
        set(&mut profile.top_k, self.top_k);
        profile
    }

    fn set_timeouts(&self, timeouts: &mut Timeouts) {
        let first_byte = self.first_byte_timeout_ms.map(Duration::from_millis);
        set(&mut timeouts.first_byte, first_byte);
        set(&mut timeouts.read, self.read_timeout_ms.map(Duration::from_millis));
    }
}

fn invalid(problem: String) -> Error {
    Error::new(ErrorCode::ConfigInvalid, problem)
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
