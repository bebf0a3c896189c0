//! Signed requests to Amazon Bedrock, as the server receives them.

use std::time::Duration;

use helix_agents_core::embed::{Embedder as _, EmbeddingPurpose};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::{LlmConfig, RetryPolicy};
use helix_agents_llm::{AwsCredentials, ModelServer, ModelServerOptions};
use tokio_util::sync::CancellationToken;

use crate::support::{Ask, Reply, Request, Server, failure};

const SECRET: &str = "wJalrXUtnFEMI-EXAMPLEKEY";

const TOKEN: &str = "session-token-of-the-tests";

fn signed(mut options: ModelServerOptions, server: &Server) -> ModelServer {
    options.base_url = server.url();
    let credentials = AwsCredentials::new("AKIDEXAMPLE", SECRET).with_session_token(TOKEN);
    let policy = RetryPolicy::default().base(Duration::from_millis(1));
    ModelServer::new(options.with_aws_credentials(credentials).with_retry(policy)).unwrap()
}

/// Checks the form of the signature of a request.
#[track_caller]
fn check_signature(request: &Request, service: &str, headers: &str) {
    let date = request.header("x-amz-date").unwrap();
    let (day, time) = date.split_once('T').unwrap();
    assert!(day.len() == 8 && time.len() == 7 && time.ends_with('Z'), "{date}");
    assert_eq!(request.header("x-amz-security-token").as_deref(), Some(TOKEN));
    let authorization = request.header("authorization").unwrap();
    let start = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{day}/eu-west-1/{service}/aws4_request, \
         SignedHeaders={headers};host;x-amz-date;x-amz-security-token, Signature="
    );
    let signature = authorization.strip_prefix(&start).unwrap_or_else(|| panic!("{authorization}"));
    assert!(signature.len() == 64 && signature.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(!request.head.contains(SECRET));
}

#[tokio::test]
async fn each_attempt_is_signed() {
    let replies = vec![Reply::status(503, "", "{}"), Reply::status(400, "", "{}")];
    let server = Server::start(replies).await;
    let adapter = signed(ModelServerOptions::bedrock_claude("b", "eu-west-1"), &server);
    let config = LlmConfig::new("b:anthropic.claude-opus-5");
    Ask { config, max_retries: 1, ..Ask::default() }.answer(&adapter).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        check_signature(request, "bedrock-mantle", "accept;anthropic-version;content-type");
    }
}

#[tokio::test]
async fn converse_and_the_list_of_models_are_signed() {
    let server = Server::start(vec![
        Reply::status(400, "", "{}"),
        Reply::status(404, "", "{}"),
        Reply::status(400, "", "{}"),
    ])
    .await;
    let adapter = signed(ModelServerOptions::bedrock_converse("b", "eu-west-1"), &server);
    let config = LlmConfig::new("b:us.amazon.nova-micro-v1:0");
    Ask { config, ..Ask::default() }.answer(&adapter).await;
    let error = adapter.models(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported);
    let requests = server.requests();
    check_signature(&requests[0], "bedrock", "accept;content-type");
    check_signature(&requests[1], "bedrock", "accept");

    let adapter = signed(ModelServerOptions::bedrock_openai("b", "eu-west-1"), &server);
    let cancel = CancellationToken::new();
    let embedder = adapter.embedder("m").unwrap();
    embedder.embed(&["x"], EmbeddingPurpose::Query, &cancel).await.unwrap_err();
    check_signature(&server.requests()[2], "bedrock-mantle", "content-type");
}

#[tokio::test]
async fn a_header_of_the_caller_replaces_the_signature() {
    let server = Server::start(vec![Reply::status(400, "", "{}")]).await;
    let adapter = signed(ModelServerOptions::bedrock_claude("b", "eu-west-1"), &server);
    let mut config = LlmConfig::new("b:m");
    config.headers.insert("authorization".to_owned(), "Bearer own".to_owned());
    Ask { config, ..Ask::default() }.answer(&adapter).await;
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization").as_deref(), Some("Bearer own"));
    assert_eq!(request.header("x-amz-date"), None);
}

#[tokio::test]
async fn errors_do_not_repeat_the_session_token() {
    let message = format!("the canonical request has x-amz-security-token:{TOKEN} ");
    let body = serde_json::json!({"message": message}).to_string();
    let kind = "x-amzn-errortype: InvalidSignatureException\r\n";
    let server = Server::start(vec![Reply::status(403, kind, &body)]).await;
    let adapter = signed(ModelServerOptions::bedrock_converse("b", "eu-west-1"), &server);
    let response = Ask { config: LlmConfig::new("b:m"), ..Ask::default() }.answer(&adapter).await;
    let (error, _) = failure(&response);
    assert_eq!(error.code, "provider_unauthorized");
    let detail = error.detail.as_deref().unwrap();
    assert!(detail.contains("canonical request") && !detail.contains(TOKEN), "{detail}");
}

#[test]
fn only_requests_to_bedrock_over_an_encrypted_connection_can_be_signed() {
    let credentials = || AwsCredentials::new("AKIDEXAMPLE", SECRET);
    let other = ModelServerOptions::new("x", "https://models.example.com/v1");
    let error = ModelServer::new(other.with_aws_credentials(credentials())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert!(error.message().contains("Amazon Bedrock"), "{error}");
    let mut plain = ModelServerOptions::bedrock_claude("b", "eu-west-1");
    plain.base_url = "http://10.0.0.1/anthropic".to_owned();
    let error = ModelServer::new(plain.with_aws_credentials(credentials())).unwrap_err();
    assert!(error.message().contains("plain HTTP"), "{error}");
}
