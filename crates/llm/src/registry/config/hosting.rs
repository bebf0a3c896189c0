//! `hosting` in `helix.toml`: the providers that host the models of others.

use helix_agents_core::error::Result;
use serde::Deserialize;

use super::{Configured, invalid};
use crate::env::{AWS_DEFAULT_REGION, AWS_REGION};
use crate::server::ModelServerOptions;

/// A host and its parameters. The names are those of the constructors of [`ModelServerOptions`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum HostingConfig {
    AzureOpenai { endpoint: String },
    AzureOpenaiDated { endpoint: String, api_version: String },
    FoundryClaude { resource: String },
    BedrockClaude { region: Option<String> },
    BedrockOpenai { region: Option<String> },
    BedrockConverse { region: Option<String> },
    VertexGemini { project: String, location: String },
    VertexClaude { project: String, location: String },
}

impl HostingConfig {
    /// Returns the options of a provider at this host, without credentials.
    pub(super) fn options(
        &self,
        name: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ModelServerOptions> {
        let region_of = |named: &Option<String>| {
            let variable = || lookup(AWS_REGION.name).or_else(|| lookup(AWS_DEFAULT_REGION.name));
            named.clone().or_else(variable).ok_or_else(|| {
                invalid(format!(
                    "the provider `{name}` has no region: set `region` in its `hosting`, or {}",
                    AWS_REGION.name
                ))
            })
        };
        Ok(match self {
            Self::AzureOpenai { endpoint } => ModelServerOptions::azure_openai(name, endpoint),
            Self::AzureOpenaiDated { endpoint, api_version } => {
                ModelServerOptions::azure_openai_dated(name, endpoint, api_version)
            }
            Self::FoundryClaude { resource } => ModelServerOptions::foundry_claude(name, resource),
            Self::BedrockClaude { region } => {
                ModelServerOptions::bedrock_claude(name, &region_of(region)?)
            }
            Self::BedrockOpenai { region } => {
                ModelServerOptions::bedrock_openai(name, &region_of(region)?)
            }
            Self::BedrockConverse { region } => {
                ModelServerOptions::bedrock_converse(name, &region_of(region)?)
            }
            Self::VertexGemini { project, location } => {
                ModelServerOptions::vertex_gemini(name, project, location)
            }
            Self::VertexClaude { project, location } => {
                ModelServerOptions::vertex_claude(name, project, location)
            }
        })
    }

    /// Adds the credentials of the machine, for a provider without `api_key_env`.
    pub(super) fn with_credentials(
        &self,
        options: ModelServerOptions,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Configured> {
        match self {
            Self::BedrockClaude { .. }
            | Self::BedrockOpenai { .. }
            | Self::BedrockConverse { .. } => signed(options, lookup),
            Self::VertexGemini { .. } | Self::VertexClaude { .. } => with_tokens(options),
            Self::AzureOpenai { .. }
            | Self::AzureOpenaiDated { .. }
            | Self::FoundryClaude { .. } => Err(needs_key(&options, "set `api_key_env`")),
        }
    }
}

/// Returns options whose requests are signed with the AWS credentials of the environment.
#[cfg(feature = "sigv4")]
fn signed(
    options: ModelServerOptions,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Configured> {
    let credentials = crate::server::AwsCredentials::from_lookup(lookup);
    let options = match credentials {
        Ok(credentials) => Ok(options.with_aws_credentials(credentials)),
        Err(variable) => Err(super::MissingKey(variable.name.to_owned())),
    };
    let key_variable = Some(crate::env::AWS_ACCESS_KEY_ID.name.to_owned());
    Ok(Configured { options, key_variable })
}

#[cfg(not(feature = "sigv4"))]
fn signed(options: ModelServerOptions, _: &dyn Fn(&str) -> Option<String>) -> Result<Configured> {
    let remedy = "set `api_key_env`, or use a program with the feature `sigv4`";
    Err(needs_key(&options, remedy))
}

/// Returns options with the access tokens of the machine's Google Cloud credentials.
#[cfg(feature = "gcp-auth")]
fn with_tokens(options: ModelServerOptions) -> Result<Configured> {
    let options = options.with_authenticator(crate::server::GoogleTokens::new());
    Ok(Configured { options: Ok(options), key_variable: None })
}

#[cfg(not(feature = "gcp-auth"))]
fn with_tokens(options: ModelServerOptions) -> Result<Configured> {
    let remedy = "set `api_key_env`, or use a program with the feature `gcp-auth`";
    Err(needs_key(&options, remedy))
}

fn needs_key(options: &ModelServerOptions, remedy: &str) -> helix_agents_core::error::Error {
    invalid(format!("the provider `{}` has no credentials: {remedy}", options.name))
}
