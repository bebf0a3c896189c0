//! Access tokens of a service account, from a local token server.

use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::{LlmConfig, LlmResponse, RetryPolicy};
use helix_agents_llm::{Authenticator as _, GoogleTokens, ModelServer, ModelServerOptions};
use serde_json::json;

use crate::support::{Ask, Reply, Server, failure};

/// A key that was generated for these tests and is used nowhere else.
const PRIVATE_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQDvXG16Alhgy9LN
IUfNiUfJKTD5uEzdLc3KRYZcSmt6jKDWNAVQz6fqGJFyzcINkIIfAxaW/hJqPS53
oqCCTjfAY65afRlv2p15+D+k+GWd4eAvl/72Xn9fXG9ZKW67J8+lthnK96hsblky
01scb29RBBYMmvx4fyI1IzAynfmSQmF41cnbAdoOqoEh/HLnpF+mMkH0yV+7rUNS
ztTCkiK35x15TVvRCb09thYQx8UXFCMioQ3JSJRWEjNJ344/RgY0ZX3S0okcEONo
BYYteXsoUQDCxp+ySBNN0mL7EF8WcBh3TCZ5Ly8Bxc6n/uNwwb+lIFaRBlXhVrCP
sJmNDwo/AgMBAAECggEANYKJKtx5W3JVduw4vBcziCIAQ+NSs6N4vP5b8ifk7Smh
DyHkClPR6wCBC5Q6DIRAwqQTGcBE56Ez0ST3EwpfZlAiezI6TIon6Et6Fuw881W6
o4ksQ3GOsgfdEKa1jXtx7U7PZ1OEQHFO2ZDsbmfvD8KFF15SkLGDOTPbo4UzdOGZ
ZOdFidgYePnLMTShHRHurbs9aQUqaLBSP2JUATiQa78NUAGgSY+pss1Vu81BUesQ
Ft6Afxm8dA7J94+Mvavr7aeCdwzzr8EDkumfUGbd4la8cIu9TTb/Mvk1n6uLUofh
D+O0zEap5WfTNzAyy0F9nRfsjjVhRepCJnt/EgdzmQKBgQD+4zEkmCTdvEEbuia8
tPjUYVOnBr7wS75YC4xAIzsC6Pj8h8Lsf825UdXl41sF2ZlZeF4YK8eKIBJGzutV
ng9q1GM+kzJ3KCIRg3PMk/M3QIsmlDt+B0MzoRDSLsbobnCYY3yq+aActYbdXG2h
NpPbX7ZxztCgRFCJGQv8Tl3/RQKBgQDwZ+L7dFqPYA26jXUvIqD+nZUcQxKj5PTB
l6lnUoAs0gg7jd/onPJcd62ldIp7+5TbjxAbIx4dRx6E1y+f9mI1p0Y7tYtwWSkR
4Yr+bR80CT2eFiXTEwgmxhpERHb7OWOchx7IA4aleTWVYsg2Vmk3K9vBUhXY6+x8
ICydtR2pswKBgGpavly4p1lmffxl1lgTY2irG86r/+wgjtIKL4Frsenq8EnfFDS+
t0bGoOwFzCtKurQch5aqXd6Ct12YZZYaF/DJooevv/T8aArKwPzyFyBM7EMywwg5
W48le/FX12ORAaZ0jMaC1o5kKFwhfxUvws5cx7IBTAgzuS8bpmanBI3JAoGAU48Y
UuQ3UdxGCVB/qZl0sesd18vsX7EF7YAEbpg7WtjJ6cE/UT+z8bXbUkX2mG9yZvoL
1BLZtb1xeyS8NfJSYmm4vKo2RB+JaeCmChbtoI2RsC/sh7f2vlte59mQLXPeDprc
dRLcqwk9OaYzBsf0HCwPXttkIpimAuK//zTjkYcCgYBV3NccIS/w+M7ic5HasEYv
KYLK0RLH7wzsCKTDxjMs9UrxkE6jKIUQGeJ6yZdMMfRKE6Zym9Qtk1uIBMb2HqQ1
ddKgopnvJpYEHwii38Elokre49SKZRwydfFRup1RUGGF1JNHt2YXTe1Eoj/N+/GU
jcuF53JT5sZJ7K1aYAdKew==
-----END PRIVATE KEY-----
";

fn tokens(server: &Server) -> GoogleTokens {
    let key = json!({
        "type": "service_account",
        "project_id": "p",
        "private_key": PRIVATE_KEY,
        "client_email": "tester@p.iam.gserviceaccount.com",
        "token_uri": format!("http://127.0.0.1:{}/token", server.port),
    });
    GoogleTokens::of_service_account(&key.to_string()).unwrap()
}

#[tokio::test]
async fn a_token_is_requested_once_and_sent_with_each_call() {
    let token = r#"{"access_token":"token-1","expires_in":3600,"token_type":"Bearer"}"#;
    let issuer = Server::start(vec![Reply::json(token)]).await;
    let server =
        Server::start(vec![Reply::status(400, "", "{}"), Reply::status(400, "", "{}")]).await;
    let mut options = ModelServerOptions::vertex_gemini("v", "p", "global");
    options.base_url = server.url();
    let adapter = ModelServer::new(options.with_authenticator(tokens(&issuer))).unwrap();
    let ask = Ask { config: LlmConfig::new("v:gemini-3-pro"), ..Ask::default() };
    ask.answer(&adapter).await;
    ask.answer(&adapter).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.header("authorization").as_deref(), Some("Bearer token-1"));
    }
    let [request] = &issuer.requests()[..] else { panic!("one request for a token") };
    assert!(request.head.starts_with("POST /token "), "{}", request.head);
    let body = String::from_utf8(request.body.clone()).unwrap();
    assert!(body.starts_with("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&"));
}

#[tokio::test]
async fn a_token_that_the_provider_refuses_is_replaced() {
    let token = |name: &str| {
        let token = json!({"access_token": name, "expires_in": 3600, "token_type": "Bearer"});
        Reply::json(&token.to_string())
    };
    let issuer = Server::start(vec![token("token-1"), token("token-2")]).await;
    let tokens = tokens(&issuer);
    // Only the last token is discarded.
    let first = tokens.token().await.unwrap();
    tokens.discard(&"other".into()).await;
    assert_eq!(tokens.token().await.unwrap(), first);
    let replies = vec![Reply::status(401, "", "{}"), Reply::status(400, "", "{}")];
    let server = Server::start(replies).await;
    let response = call(&server, tokens, 0).await;
    assert_eq!(failure(&response).0.code, "provider_rejected");
    let sent: Vec<_> = server.requests().iter().map(|r| r.header("authorization")).collect();
    assert_eq!(sent, [Some("Bearer token-1".to_owned()), Some("Bearer token-2".to_owned())]);
    assert_eq!(issuer.requests().len(), 2);
}

/// Makes a call to a Gemini model with these tokens.
async fn call(server: &Server, tokens: GoogleTokens, max_retries: u32) -> LlmResponse {
    let mut options = ModelServerOptions::vertex_gemini("v", "p", "global");
    options.base_url = server.url();
    let policy = RetryPolicy::default().base(Duration::from_millis(1));
    let adapter = ModelServer::new(options.with_retry(policy).with_authenticator(tokens)).unwrap();
    let config = LlmConfig::new("v:gemini-3-pro");
    Ask { config, max_retries, ..Ask::default() }.answer(&adapter).await
}

#[tokio::test]
async fn a_token_server_that_refuses_ends_the_call() {
    let body = r#"{"error":"invalid_grant","error_description":"the account is disabled"}"#;
    let issuer = Server::start(vec![Reply::status(400, "", body); 10]).await;
    let server = Server::start(Vec::new()).await;
    let response = call(&server, tokens(&issuer), 1).await;
    let (error, should_stop) = failure(&response);
    assert_eq!((&*error.code, should_stop), ("provider_unauthorized", true));
    assert_eq!(response.failed_attempts, [], "there was no retry");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn an_unavailable_token_server_is_an_error_that_can_be_retried() {
    let issuer = Server::start(Vec::new()).await;
    let tokens = tokens(&issuer);
    drop(issuer);
    let token = tokio::time::timeout(Duration::from_secs(20), tokens.token()).await.unwrap();
    let error = token.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProviderUnavailable);
    assert!(error.is_retryable());
}

#[test]
fn an_invalid_key_is_rejected() {
    for key in ["", "{}", "not json"] {
        let error = GoogleTokens::of_service_account(key).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{key}");
    }
    assert_eq!(format!("{:?}", GoogleTokens::new()), "GoogleTokens { .. }");
}
