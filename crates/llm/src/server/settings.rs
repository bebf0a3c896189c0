//! The settings of a call: validation, and the HTTP headers.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::Inner;
use crate::secret::is_secret_header;
use crate::wire_format::{Call, WireFormat, provider_options};

#[cfg(test)]
mod tests;

/// Headers that the HTTP client sets.
const FIXED_HEADERS: [&str; 5] =
    ["connection", "content-length", "content-type", "host", "transfer-encoding"];

/// Rejects settings that this server does not support.
pub(super) fn check<F: WireFormat>(format: F, config: &LlmConfig, server: &Inner) -> Result<()> {
    let name = &server.options.name;
    format.check(name, config)?;
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
    for (key, _) in provider_options::<F>(config, name) {
        if F::RESERVED_MEMBERS.contains(&key.as_str()) {
            return Err(invalid(format!("provider options must not set `{key}`")));
        }
        if config.native_output && F::OUTPUT_MEMBER == Some(key) {
            return Err(invalid(format!(
                "provider options must not set `{key}` together with `native_output`, whose schema is part of it"
            )));
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
pub(super) fn headers<F: WireFormat>(
    format: F,
    call: &Call<'_>,
    key_header: Option<&(HeaderName, HeaderValue)>,
) -> Result<HeaderMap> {
    let config = call.request.config;
    let mut headers = HeaderMap::with_capacity(4 + config.headers.len());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some((name, value)) = key_header {
        headers.insert(name, value.clone());
    }
    format.add_headers(config, call.capabilities, &mut headers);
    for (name, value) in &config.headers {
        let (name, value) = parse_header(name, value)?;
        headers.insert(name, value);
    }
    format.complete_headers(call, &mut headers);
    Ok(headers)
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let parsed = HeaderName::try_from(name)
        .map_err(|_| invalid(format!("`{name}` is not a valid HTTP header name")))?;
    if FIXED_HEADERS.contains(&parsed.as_str()) {
        return Err(invalid(format!("the header `{name}` cannot be set")));
    }
    // The value may be a secret, so the message does not repeat it.
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| invalid(format!("the value of the header `{name}` cannot be sent")))?;
    value.set_sensitive(is_secret_header(parsed.as_str()));
    Ok((parsed, value))
}

#[cold]
fn invalid(problem: String) -> Error {
    Error::new(ErrorCode::ConfigInvalid, problem)
}
