//! The Messages API of Anthropic.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{LlmConfig, ThinkingAmount};
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};

use crate::capability::{ModelCapabilities, Sampling};
use crate::claude_reasoning;
use crate::wire_format::{Call, PageEnd, RequestBody, WireFormat};

mod block;
mod container;
mod message;
mod reply;
mod request;
mod thinking;
mod tools;
mod wire;

/// The header that selects the version of the API.
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// The header that lists beta features.
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// The current version of the API. It rejects sampling settings.
const CURRENT_VERSION: HeaderValue = HeaderValue::from_static("2026-10-21");

/// The last version of the API that accepts sampling settings, which models before Claude 4.7 have.
const SAMPLING_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The Messages API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnthropicMessages;

impl WireFormat for AnthropicMessages {
    type Reply = reply::Reply;

    const API: &'static str = "anthropic";
    const RESERVED_MEMBERS: &'static [&'static str] =
        &["model", "messages", "system", "tools", "stream"];

    const OPTIONS_KEY: &'static str = "anthropic";

    const OUTPUT_MEMBER: Option<&'static str> = Some("output_config");

    fn add_path(self, url: &mut Url) {
        add_versioned(url, "messages");
    }

    fn add_models_path(self, url: &mut Url) {
        add_versioned(url, "models");
    }

    fn next_models_page(self, end: PageEnd) -> Option<(&'static str, String)> {
        end.last_id.filter(|_| end.has_more == Some(true)).map(|last| ("after_id", last))
    }

    fn add_headers(
        self,
        config: &LlmConfig,
        capabilities: Option<&ModelCapabilities>,
        headers: &mut HeaderMap,
    ) {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(VERSION, version(config, capabilities));
    }

    fn complete_headers(self, call: &Call<'_>, headers: &mut HeaderMap) {
        if thinking::settings(call).as_ref().is_some_and(claude_reasoning::needs_beta) {
            add_beta(claude_reasoning::BETA, headers);
        }
    }

    fn check(self, provider: &str, config: &LlmConfig) -> Result<()> {
        let unsupported = [
            ("presence_penalty", config.presence_penalty.is_some()),
            ("frequency_penalty", config.frequency_penalty.is_some()),
            ("seed", config.seed.is_some()),
        ];
        match unsupported.into_iter().find(|(_, is_set)| *is_set) {
            Some((setting, _)) => Err(Error::new(
                ErrorCode::ConfigInvalid,
                format!("the provider `{provider}` does not support `{setting}`"),
            )),
            None => check_budget(provider, config),
        }
    }

    fn check_call(self, call: &Call<'_>) -> Result<()> {
        match call.request.output_schema {
            Some(schema) if !request::is_supported(schema) => Err(Error::new(
                ErrorCode::ConfigInvalid,
                "the API cannot constrain a reply to the output's schema, because the schema is recursive, has maps \
                 or uses keywords that the API lacks; remove `native_output`",
            )),
            _ => Ok(()),
        }
    }

    fn assemble(self, call: &Call<'_>) -> RequestBody {
        request::assemble(call)
    }
}

/// Adds a beta feature to those of the caller.
fn add_beta(feature: &str, headers: &mut HeaderMap) {
    let features = headers.get(BETA).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_listed = |known: &[u8]| known.trim_ascii() == feature.as_bytes();
    if features.split(|byte| *byte == b',').any(is_listed) {
        return;
    }
    let separator: &[u8] = if features.is_empty() { b"" } else { b"," };
    let features = [features, separator, feature.as_bytes()].concat();
    // The parts are valid values, and so is the list.
    if let Ok(features) = HeaderValue::from_bytes(&features) {
        headers.insert(BETA, features);
    }
}

/// Returns the version for a call. Some hosts serve the current version only for models that have no sampling settings.
fn version(config: &LlmConfig, capabilities: Option<&ModelCapabilities>) -> HeaderValue {
    let is_option =
        |name: &str| config.provider_options.values().any(|options| options.contains_key(name));
    let samples = config.temperature.is_some()
        || config.top_p.is_some()
        || config.top_k.is_some()
        || ["temperature", "top_p", "top_k"].into_iter().any(is_option);
    if samples || capabilities.is_some_and(|known| known.sampling == Sampling::Yes) {
        return SAMPLING_VERSION;
    }
    CURRENT_VERSION
}

/// Adds a path to the base URL, which may already contain the version.
fn add_versioned(url: &mut Url, name: &str) {
    let has_version = url.path().trim_end_matches('/').ends_with("/v1");
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        if !has_version {
            path.push("v1");
        }
        path.push(name);
    }
}

/// Rejects a limit of the reasoning that leaves no tokens for the reply.
fn check_budget(provider: &str, config: &LlmConfig) -> Result<()> {
    let limit = config.max_output_tokens.unwrap_or(request::MAX_TOKENS);
    match config.thinking.map(|thinking| thinking.amount) {
        Some(ThinkingAmount::Budget(tokens)) if tokens >= limit => Err(Error::new(
            ErrorCode::ConfigInvalid,
            format!(
                "the provider `{provider}` counts reasoning as output, so the reasoning budget ({tokens}) must be \
                 less than `max_output_tokens` ({limit})"
            ),
        )),
        _ => Ok(()),
    }
}
