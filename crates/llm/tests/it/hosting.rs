//! Requests to providers that host the models of others.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use helix_agents_llm::{ApiKey, Authenticator, ModelServer, ModelServerOptions};

use crate::support::{Ask, Reply, Server, failure};

/// Makes a call with these options at the server's address, and returns the request.
async fn sent(
    options: ModelServerOptions,
    replies: Vec<Reply>,
) -> (Vec<crate::support::Request>, String) {
    let server = Server::start(replies).await;
    let original = options.base_url.clone();
    let path = original.splitn(4, '/').nth(3).unwrap_or_default();
    let mut options = options;
    options.base_url = format!("{}/{path}", server.url().trim_end_matches("/v1"));
    let adapter = ModelServer::new(options).unwrap();
    let config = LlmConfig::new("h:claude-opus-5");
    Ask { config, ..Ask::default() }.answer(&adapter).await;
    (server.requests(), original)
}

fn reply() -> Vec<Reply> {
    vec![Reply::status(400, "", "{}")]
}

#[tokio::test]
async fn azure_openai_has_a_key_header_and_a_path_with_or_without_a_version() {
    let options = ModelServerOptions::azure_openai("h", "https://r.openai.azure.com/");
    let (requests, base_url) = sent(options.with_api_key("secret"), reply()).await;
    assert_eq!(base_url, "https://r.openai.azure.com/openai/v1");
    assert!(requests[0].head.starts_with("POST /openai/v1/responses "), "{}", requests[0].head);
    assert_eq!(requests[0].header("api-key").unwrap(), "secret");
    assert_eq!(requests[0].header("authorization"), None);

    let endpoint = "https://r.openai.azure.com";
    let options = ModelServerOptions::azure_openai_dated("h", endpoint, "2024-10-21");
    let (requests, _) = sent(options.with_api_key("secret"), reply()).await;
    let path =
        "POST /openai/deployments/claude-opus-5/chat/completions?api-version=2024-10-21 HTTP/1.1";
    assert!(requests[0].head.starts_with(path), "{}", requests[0].head);
}

#[tokio::test]
async fn claude_on_azure_and_bedrock_is_the_messages_api() {
    let options = ModelServerOptions::foundry_claude("h", "r").with_api_key("secret");
    let (requests, base_url) = sent(options, reply()).await;
    assert_eq!(base_url, "https://r.services.ai.azure.com/anthropic");
    assert!(requests[0].head.starts_with("POST /anthropic/v1/messages "), "{}", requests[0].head);
    assert_eq!(requests[0].header("api-key").unwrap(), "secret");

    let options = ModelServerOptions::bedrock_claude("h", "eu-west-1").with_api_key("secret");
    let (requests, base_url) = sent(options, reply()).await;
    assert_eq!(base_url, "https://bedrock-mantle.eu-west-1.api.aws/anthropic");
    assert_eq!(requests[0].header("authorization").unwrap(), "Bearer secret");
}

/// Returns another token for each attempt, and fails the first one.
#[derive(Debug, Default)]
struct Tokens(AtomicUsize);

#[async_trait]
impl Authenticator for Tokens {
    async fn token(&self) -> Result<ApiKey> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Error::new(ErrorCode::ProviderUnavailable, "the token server is unavailable")),
            number => Ok(ApiKey::new(&format!("token-{number}"))),
        }
    }
}

#[tokio::test]
async fn vertex_names_the_model_in_the_path_and_asks_for_tokens() {
    let options = ModelServerOptions::vertex_claude("h", "p", "europe-west1");
    let server = Server::start(reply()).await;
    let path = "/v1/projects/p/locations/europe-west1/publishers/anthropic";
    assert_eq!(options.base_url, format!("https://europe-west1-aiplatform.googleapis.com{path}"));
    let mut options = options.with_authenticator(Tokens::default());
    options.base_url = format!("{}{path}", server.url().trim_end_matches("/v1"));
    let adapter = ModelServer::new(options).unwrap();
    let config = LlmConfig::new("h:claude-opus-5");
    // The first attempt fails without a token.
    Ask { config: config.clone(), max_retries: 1, ..Ask::default() }.answer(&adapter).await;
    let request = &server.requests()[0];
    let expected = format!("POST {path}/models/claude-opus-5:streamRawPredict ");
    assert!(request.head.starts_with(&expected), "{}", request.head);
    assert_eq!(request.header("authorization").unwrap(), "Bearer token-1");
    let body = request.json();
    assert_eq!(body["anthropic_version"], "vertex-2023-10-16");
    assert_eq!(body.get("model"), None);

    let failing = ModelServerOptions::vertex_gemini("h", "p", "global");
    assert!(failing.base_url.starts_with("https://aiplatform.googleapis.com/v1/projects/p/"));
    let mut failing = failing.with_authenticator(Tokens::default());
    failing.base_url = server.url();
    let adapter = ModelServer::new(failing).unwrap();
    let response = Ask { config, ..Ask::default() }.answer(&adapter).await;
    assert_eq!(failure(&response).0.code, "provider_unavailable");
}
