//! Instructions to fix the errors of providers.

use std::borrow::Cow;

use helix_agents_core::error::{Error, ErrorCode, ErrorRecord};

use super::ProviderDiagnosis;
use crate::CONFIG_FILE;
use crate::http::{Route, parse_base_url};
use crate::registry::KnownProvider;

/// Returns the remedy for an error of the check of the default model.
pub(super) fn of_check(error: &Error) -> Cow<'static, str> {
    match error.code() {
        ErrorCode::ConfigInvalid => set_variable(None).into(),
        _ => "choose another default model".into(),
    }
}

/// Returns the remedy for an error of a provider.
pub(super) fn of_provider(provider: &ProviderDiagnosis, error: &ErrorRecord) -> Cow<'static, str> {
    let variable = provider.key_variable.as_deref();
    match error.to_error(ErrorCode::Internal).code() {
        ErrorCode::ProviderUnauthorized => refused_key(provider).into(),
        ErrorCode::ProviderCredentialsExpired => match variable {
            Some("AWS_ACCESS_KEY_ID") => {
                "get new AWS credentials, and set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY \
                                          and AWS_SESSION_TOKEN"
                    .into()
            }
            Some(variable) => format!("get a new key or token, and set {variable} to it").into(),
            None => "get a new key or token of the provider".into(),
        },
        ErrorCode::ProviderRegionUnsupported => {
            "change the region in the configuration, or use a provider that serves this country"
                .into()
        }
        ErrorCode::ProviderUnavailable | ErrorCode::ProviderTimeout => {
            not_reachable(provider).into()
        }
        ErrorCode::ProviderRateLimited => "wait, or check the account's quota".into(),
        ErrorCode::ConfigInvalid => set_variable(variable).into(),
        ErrorCode::Unsupported => format!(
            "some hosts have no list of models; if model calls fail, too, {}",
            check_url(provider)
        )
        .into(),
        _ => check_url(provider).into(),
    }
}

fn set_variable(variable: Option<&str>) -> String {
    let variable = variable.unwrap_or("the variable");
    format!("set {variable}, or remove the provider from {CONFIG_FILE}")
}

fn refused_key(provider: &ProviderDiagnosis) -> String {
    let place = match &provider.key_variable {
        Some(variable) if provider.key == "set" => format!("in {variable}"),
        _ if provider.key == "set" => "of the provider".to_owned(),
        Some(variable) => return format!("set {variable} to a key of the provider"),
        None => {
            return format!(
                "the provider requires a key: name the variable that holds it in `api_key_env` of {CONFIG_FILE}"
            );
        }
    };
    format!(
        "check the key or token {place}: it may be mistyped, revoked, expired, without the permission for this API, \
         or of another provider"
    )
}

fn not_reachable(provider: &ProviderDiagnosis) -> String {
    let place = url_place(provider);
    let url = provider.base_url.as_deref();
    let parsed = url.and_then(|url| parse_base_url(url, &provider.name).ok());
    if parsed.is_some_and(|(_, route)| route == Route::Loopback) {
        return format!("start the server, or correct its URL ({place})");
    }
    format!("check the network and the proxy, correct the URL ({place}), or try again later")
}

/// Returns the name of the setting with the URL of a provider.
fn url_place(provider: &ProviderDiagnosis) -> String {
    let known = KnownProvider::find(&provider.name);
    match known.and_then(|known| known.base_url) {
        Some(variable) => format!("{}, or `base_url` in {CONFIG_FILE}", variable.name),
        None => format!("`base_url` in {CONFIG_FILE}"),
    }
}

fn check_url(provider: &ProviderDiagnosis) -> String {
    let root = match provider.api {
        Some("anthropic_messages") => "such as https://api.anthropic.com",
        Some("gemini_generate") => "which usually ends in `/v1beta`",
        Some("bedrock_converse") => "which usually has no path",
        _ => "which usually ends in `/v1`",
    };
    format!("check that its URL ({}) is the root of the API, {root}", url_place(provider))
}
