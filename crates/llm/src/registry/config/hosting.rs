//! `hosting` in `helix.toml`: the providers that host the models of others.

use helix_agents_core::error::{Error, Result};
use serde::Deserialize;

use super::{Configured, invalid};
use crate::env::{AWS_DEFAULT_REGION, AWS_REGION};
use crate::server::ModelServerOptions;

/// A host and its parameters. The names are those of the constructors of [`ModelServerOptions`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HostingConfig {
    AzureOpenai(Azure),
    AzureOpenaiDated(AzureDated),
    FoundryClaude(Foundry),
    BedrockClaude(Bedrock),
    BedrockOpenai(Bedrock),
    BedrockConverse(Bedrock),
    VertexGemini(Vertex),
    VertexClaude(Vertex),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Azure {
    endpoint: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AzureDated {
    endpoint: String,
    api_version: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Foundry {
    resource: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bedrock {
    region: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vertex {
    project: String,
    location: String,
}

impl HostingConfig {
    /// Returns the options of a provider at this host, without credentials.
    pub(super) fn options(
        &self,
        name: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ModelServerOptions> {
        Ok(match self {
            Self::AzureOpenai(azure) => ModelServerOptions::azure_openai(name, &azure.endpoint),
            Self::AzureOpenaiDated(AzureDated { endpoint, api_version }) => {
                ModelServerOptions::azure_openai_dated(name, endpoint, api_version)
            }
            Self::FoundryClaude(foundry) => {
                ModelServerOptions::foundry_claude(name, &foundry.resource)
            }
            Self::BedrockClaude(bedrock) => {
                ModelServerOptions::bedrock_claude(name, &bedrock.region(name, lookup)?)
            }
            Self::BedrockOpenai(bedrock) => {
                ModelServerOptions::bedrock_openai(name, &bedrock.region(name, lookup)?)
            }
            Self::BedrockConverse(bedrock) => {
                ModelServerOptions::bedrock_converse(name, &bedrock.region(name, lookup)?)
            }
            Self::VertexGemini(Vertex { project, location }) => {
                ModelServerOptions::vertex_gemini(name, project, location)
            }
            Self::VertexClaude(Vertex { project, location }) => {
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
            Self::BedrockClaude(_) | Self::BedrockOpenai(_) | Self::BedrockConverse(_) => {
                sign(options, lookup)
            }
            Self::VertexGemini(_) | Self::VertexClaude(_) => add_tokens(options),
            Self::AzureOpenai(_) | Self::AzureOpenaiDated(_) | Self::FoundryClaude(_) => {
                Err(no_credentials(&options, "set `api_key_env`"))
            }
        }
    }
}

impl Bedrock {
    /// Returns the region, which an environment variable may set.
    fn region(&self, name: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String> {
        let variables = || lookup(AWS_REGION.name).or_else(|| lookup(AWS_DEFAULT_REGION.name));
        self.region.clone().or_else(variables).ok_or_else(|| {
            invalid(format!(
                "the provider `{name}` has no region: set `region` in its `hosting`, or {}",
                AWS_REGION.name
            ))
        })
    }
}

/// Adds the AWS credentials of the environment.
#[cfg(feature = "sigv4")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature, it fails")]
fn sign(
    options: ModelServerOptions,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Configured> {
    use crate::env::AWS_ACCESS_KEY_ID;
    use crate::server::AwsCredentials;

    let options = match AwsCredentials::from_lookup(lookup) {
        Ok(credentials) => Ok(options.with_aws_credentials(credentials)),
        Err(variable) => Err(super::MissingKey(variable.name.to_owned())),
    };
    Ok(Configured { options, key_variable: Some(AWS_ACCESS_KEY_ID.name.to_owned()) })
}

#[cfg(not(feature = "sigv4"))]
#[expect(clippy::needless_pass_by_value, reason = "with the feature, the options are changed")]
fn sign(options: ModelServerOptions, _: &dyn Fn(&str) -> Option<String>) -> Result<Configured> {
    let remedy = "set `api_key_env`, or use a program with the feature `sigv4`";
    Err(no_credentials(&options, remedy))
}

/// Adds the access tokens of the machine's Google Cloud credentials.
#[cfg(feature = "gcp-auth")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature, it fails")]
fn add_tokens(options: ModelServerOptions) -> Result<Configured> {
    let options = options.with_authenticator(crate::server::GoogleTokens::new());
    Ok(Configured { options: Ok(options), key_variable: None })
}

#[cfg(not(feature = "gcp-auth"))]
#[expect(clippy::needless_pass_by_value, reason = "with the feature, the options are changed")]
fn add_tokens(options: ModelServerOptions) -> Result<Configured> {
    let remedy = "set `api_key_env`, or use a program with the feature `gcp-auth`";
    Err(no_credentials(&options, remedy))
}

fn no_credentials(options: &ModelServerOptions, remedy: &str) -> Error {
    invalid(format!("the provider `{}` has no credentials: {remedy}", options.name))
}
