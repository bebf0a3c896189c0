//! Providers that host the models of other vendors: their URLs, and how their requests differ.

use reqwest::Url;

use super::options::{ApiFormat, ModelServerOptions};
use crate::openai_chat::ServerProfile;

/// The host of the models of a server. It may change the URL, some members of requests, and their authentication.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Hosting {
    /// The vendor of the API, or a host whose requests do not differ.
    #[default]
    Direct,
    /// A dated version of Azure OpenAI's API. The name of a model is the name of its deployment, which is part of the path.
    AzureDeployments {
        /// The version of the API, such as `2025-04-01-preview`.
        api_version: String,
    },
    /// Amazon Bedrock. Requests are those of the original API, but can be signed.
    Bedrock {
        /// The region, which is part of each signature.
        region: String,
    },
    /// Claude on Vertex AI: `streamRawPredict`, with the model in the path and `anthropic_version` in the body.
    VertexRawPredict,
}

/// The header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeyHeader {
    /// The header of the API: `x-goog-api-key` for Gemini, otherwise `authorization`.
    #[default]
    Default,
    /// `authorization`, as a bearer token.
    Bearer,
    /// `api-key`, as on Azure.
    AzureApiKey,
}

impl Hosting {
    /// Returns the address of a call, or `None` if it is that of the original API.
    pub(super) fn url(&self, base_url: &Url, model: &str) -> Option<Url> {
        match self {
            Self::Direct | Self::Bedrock { .. } => None,
            Self::AzureDeployments { api_version } => {
                let mut url = base_url.clone();
                if let Ok(mut path) = url.path_segments_mut() {
                    path.pop_if_empty().extend(["deployments", model, "chat", "completions"]);
                }
                url.query_pairs_mut().append_pair("api-version", api_version);
                Some(url)
            }
            Self::VertexRawPredict => {
                let mut url = base_url.clone();
                if let Ok(mut path) = url.path_segments_mut() {
                    path.pop_if_empty().push("models").push(&format!("{model}:streamRawPredict"));
                }
                Some(url)
            }
        }
    }
}

impl ModelServerOptions {
    /// Creates the options for Azure OpenAI. `endpoint` is the address of the resource, and models are named by their
    /// deployments. Responses is the API; [`with_profile`](Self::with_profile) selects Chat Completions.
    #[must_use]
    pub fn azure_openai(name: &str, endpoint: &str) -> Self {
        Self::new(name, &below(endpoint, "openai/v1"))
            .with_format(ApiFormat::OpenAiResponses)
            .with_key_header(KeyHeader::AzureApiKey)
    }

    /// Creates the options for Azure OpenAI with an `api-version` such as `2024-10-21`. `endpoint` is as in
    /// [`azure_openai`](Self::azure_openai). The API is Chat Completions.
    #[must_use]
    pub fn azure_openai_dated(name: &str, endpoint: &str, api_version: &str) -> Self {
        Self::new(name, &below(endpoint, "openai"))
            .with_profile(ServerProfile::openai())
            .with_key_header(KeyHeader::AzureApiKey)
            .with_hosting(Hosting::AzureDeployments { api_version: api_version.to_owned() })
    }

    /// Creates the options for Claude in Microsoft Foundry. `resource` is the name of the Foundry resource.
    #[must_use]
    pub fn foundry_claude(name: &str, resource: &str) -> Self {
        Self::new(name, &format!("https://{resource}.services.ai.azure.com/anthropic"))
            .with_format(ApiFormat::AnthropicMessages)
            .with_key_header(KeyHeader::AzureApiKey)
    }

    /// Creates the options for Claude on Amazon Bedrock. It takes an API key of Bedrock, or AWS credentials with the
    /// feature `sigv4`.
    #[must_use]
    pub fn bedrock_claude(name: &str, region: &str) -> Self {
        Self::new(name, &format!("https://bedrock-mantle.{region}.api.aws/anthropic"))
            .with_format(ApiFormat::AnthropicMessages)
            .with_key_header(KeyHeader::Bearer)
            .with_hosting(Hosting::Bedrock { region: region.to_owned() })
    }

    /// Creates the options for OpenAI's models on Amazon Bedrock, with the same credentials as
    /// [`bedrock_claude`](Self::bedrock_claude).
    #[must_use]
    pub fn bedrock_openai(name: &str, region: &str) -> Self {
        Self::new(name, &format!("https://bedrock-mantle.{region}.api.aws/openai/v1"))
            .with_format(ApiFormat::OpenAiResponses)
            .with_key_header(KeyHeader::Bearer)
            .with_hosting(Hosting::Bedrock { region: region.to_owned() })
    }

    /// Creates the options for the Converse API of Amazon Bedrock, with the same credentials as
    /// [`bedrock_claude`](Self::bedrock_claude).
    #[must_use]
    pub fn bedrock_converse(name: &str, region: &str) -> Self {
        Self::new(name, &format!("https://bedrock-runtime.{region}.amazonaws.com"))
            .with_format(ApiFormat::BedrockConverse)
            .with_hosting(Hosting::Bedrock { region: region.to_owned() })
    }

    /// Creates the options for Gemini on Vertex AI. Its tokens expire, so it needs an
    /// [`Authenticator`](crate::Authenticator), such as `GoogleTokens` with the feature `gcp-auth`.
    #[must_use]
    pub fn vertex_gemini(name: &str, project: &str, location: &str) -> Self {
        Self::new(name, &vertex(project, location, "google"))
            .with_format(ApiFormat::GeminiGenerate)
            .with_key_header(KeyHeader::Bearer)
    }

    /// Creates the options for Claude on Vertex AI. Its tokens expire, so it needs an
    /// [`Authenticator`](crate::Authenticator), such as `GoogleTokens` with the feature `gcp-auth`.
    #[must_use]
    pub fn vertex_claude(name: &str, project: &str, location: &str) -> Self {
        Self::new(name, &vertex(project, location, "anthropic"))
            .with_format(ApiFormat::AnthropicMessages)
            .with_key_header(KeyHeader::Bearer)
            .with_hosting(Hosting::VertexRawPredict)
    }
}

fn below(endpoint: &str, path: &str) -> String {
    format!("{}/{path}", endpoint.trim_end_matches('/'))
}

fn vertex(project: &str, location: &str, publisher: &str) -> String {
    let host = match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        region => format!("{region}-aiplatform.googleapis.com"),
    };
    format!("https://{host}/v1/projects/{project}/locations/{location}/publishers/{publisher}")
}
