//! The settings of a call: validation, and the HTTP headers.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::profile::OutputFormat;
use super::{Inner, is_secret_header};

/// Members of the body that provider options must not replace, because decoding, the conversation
/// and the checks depend on them.
const RESERVED_MEMBERS: [&str; 4] = ["model", "messages", "tools", "stream"];

/// Headers that the HTTP client sets.
const FIXED_HEADERS: [&str; 5] =
    ["connection", "content-length", "content-type", "host", "transfer-encoding"];

/// Rejects settings that this server does not support.
pub(super) fn check(config: &LlmConfig, server: &Inner) -> Result<()> {
    let name = &server.options.name;
    if config.top_k.is_some() && !server.profile().top_k {
        return Err(invalid(format!("the provider `{name}` does not support `top_k`")));
    }
    if config.native_output && server.profile().output_format == OutputFormat::Unsupported {
        return Err(invalid(format!(
            "the provider `{name}` has no response format for JSON schemas; remove `native_output`"
        )));
    }
    let numbers = [
        ("temperature", config.temperature),
        ("top_p", config.top_p),
        ("presence_penalty", config.presence_penalty),
        ("frequency_penalty", config.frequency_penalty),
    ];
    for (setting, value) in numbers {
        if value.is_some_and(|number| !number.is_finite()) {
            return Err(invalid(format!("`{setting}` is not a number")));
        }
    }
    for (key, _) in options(config, name) {
        if RESERVED_MEMBERS.contains(&key.as_str()) {
            return Err(invalid(format!("provider options must not set `{key}`")));
        }
    }
    for (header, value) in &config.headers {
        let (header, _) = parse_header(header, value)?;
        if is_secret_header(header.as_str()) && server.is_exposed() {
            return Err(invalid(format!(
                "the header `{header}` would be sent over plain HTTP to another machine; use https, or \
                 allow it with `allow_http`"
            )));
        }
    }
    Ok(())
}

/// Returns the headers of a call. The caller's headers take precedence.
pub(super) fn headers(
    config: &LlmConfig,
    authorization: Option<&HeaderValue>,
) -> Result<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(4 + config.headers.len());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(value) = authorization {
        headers.insert(AUTHORIZATION, value.clone());
    }
    for (name, value) in &config.headers {
        let (name, value) = parse_header(name, value)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the options for this provider: those under `openai`, overridden by those under its own
/// name.
pub(super) fn options<'a>(
    config: &'a LlmConfig,
    provider: &str,
) -> impl Iterator<Item = (&'a String, &'a serde_json::Value)> {
    let own = config.provider_options.get(provider);
    let common = config.provider_options.get("openai");
    let common = common.filter(|_| provider != "openai").into_iter().flatten();
    common
        .filter(move |(key, _)| own.is_none_or(|own| !own.contains_key(*key)))
        .chain(own.into_iter().flatten())
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let parsed = HeaderName::try_from(name)
        .map_err(|_| invalid(format!("`{name}` is not a valid HTTP header name")))?;
    if FIXED_HEADERS.contains(&parsed.as_str()) {
        return Err(invalid(format!("the header `{name}` cannot be set")));
    }
    // The value may be a secret, so the message does not repeat it.
    let value = HeaderValue::from_str(value)
        .map_err(|_| invalid(format!("the value of the header `{name}` cannot be sent")))?;
    Ok((parsed, value))
}

fn invalid(problem: String) -> Error {
    Error::new(ErrorCode::ConfigInvalid, problem)
}
