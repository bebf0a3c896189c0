//! Refused access tokens are replaced once.

use std::sync::Mutex;

use async_trait::async_trait;
use helix_agents_core::embed::{Embedder as _, EmbeddingPurpose};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmResponse;
use helix_agents_llm::{ApiKey, Authenticator, ModelServer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Ask, Reply, Server, adapter, content, failure, finish, options, stream, text,
};

/// Issues `token-1` until it is discarded, and then the next one.
#[derive(Debug, Default)]
struct Tokens(Mutex<usize>);

#[async_trait]
impl Authenticator for Tokens {
    async fn token(&self) -> Result<ApiKey> {
        Ok(ApiKey::new(&format!("token-{}", *self.0.lock().unwrap() + 1)))
    }

    async fn discard(&self, token: &ApiKey) {
        let mut discarded = self.0.lock().unwrap();
        assert_eq!(*token, ApiKey::new(&format!("token-{}", *discarded + 1)));
        *discarded += 1;
    }
}

/// Issues the same token always, and ignores that it was refused.
#[derive(Debug)]
struct Same;

#[async_trait]
impl Authenticator for Same {
    async fn token(&self) -> Result<ApiKey> {
        Ok("token-1".into())
    }
}

/// Issues no token after the first one was refused.
#[derive(Debug, Default)]
struct Once(Mutex<bool>);

#[async_trait]
impl Authenticator for Once {
    async fn token(&self) -> Result<ApiKey> {
        match *self.0.lock().unwrap() {
            true => Err(Error::new(ErrorCode::ConfigInvalid, "no token is left")),
            false => Ok("token-1".into()),
        }
    }

    async fn discard(&self, _: &ApiKey) {
        *self.0.lock().unwrap() = true;
    }
}

fn good() -> Reply {
    Reply::events(stream([text("Hi."), finish("stop")]))
}

fn refused() -> Reply {
    Reply::status(401, "", "{}")
}

/// Makes a call and returns the response and the tokens that were sent.
async fn call(
    replies: Vec<Reply>,
    tokens: impl Authenticator + 'static,
    ask: Ask,
) -> (LlmResponse, Vec<String>) {
    let server = Server::start(replies).await;
    let adapter = ModelServer::new(options(&server).with_authenticator(tokens)).unwrap();
    let response = ask.answer(&adapter).await;
    let requests = server.requests();
    let sent = requests.iter().map(|request| request.header("authorization").unwrap()).collect();
    (response, sent)
}

#[tokio::test]
async fn a_refused_token_is_replaced_without_a_retry() {
    let expired = Reply::status(403, "", r#"{"code":"ExpiredToken","message":"x"}"#);
    for first in [refused(), expired] {
        let (response, sent) = call(vec![first, good()], Tokens::default(), Ask::default()).await;
        assert_eq!(content(&response), "Hi.");
        assert_eq!(response.failed_attempts, []);
        assert_eq!(sent, ["Bearer token-1", "Bearer token-2"]);
    }
}

#[tokio::test]
async fn a_second_refusal_is_an_error() {
    let ask = Ask { max_retries: 3, ..Ask::default() };
    let (response, sent) = call(vec![refused(); 5], Tokens::default(), ask).await;
    let (error, should_stop) = failure(&response);
    assert_eq!((&*error.code, should_stop), ("provider_unauthorized", true));
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2"]);
}

#[tokio::test]
async fn a_retry_after_a_replaced_token_uses_the_new_one() {
    let ask = Ask { max_retries: 1, ..Ask::default() };
    let replies = vec![refused(), Reply::status(503, "", "{}"), good()];
    let (response, sent) = call(replies, Tokens::default(), ask).await;
    assert_eq!(content(&response), "Hi.");
    assert_eq!(response.failed_attempts.len(), 1);
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2", "Bearer token-2"]);
}

#[tokio::test]
async fn without_another_token_there_is_no_second_request() {
    let (response, sent) = call(vec![refused(), good()], Same, Ask::default()).await;
    assert_eq!(failure(&response).0.code, "provider_unauthorized");
    assert_eq!(sent.len(), 1);
    let (response, sent) = call(vec![refused(), good()], Once::default(), Ask::default()).await;
    assert_eq!(failure(&response).0.message, "no token is left");
    assert_eq!(sent.len(), 1);
}

#[tokio::test]
async fn a_token_is_kept_if_something_else_was_refused() {
    let event = r#"{"error":{"code":"invalid_api_key"}}"#;
    let late = Reply::events([text("H"), event.to_owned()].map(|e| format!("data: {e}\n\n")));
    for reply in [Reply::status(403, "", "{}"), Reply::status(404, "", "{}"), late] {
        let (response, sent) = call(vec![reply, good()], Tokens::default(), Ask::default()).await;
        failure(&response);
        assert_eq!(sent, ["Bearer token-1"]);
    }
    let mut ask = Ask::default();
    ask.config.headers.insert("authorization".to_owned(), "Bearer own".to_owned());
    let (response, sent) = call(vec![refused(), good()], Tokens::default(), ask).await;
    assert_eq!(failure(&response).0.code, "provider_unauthorized");
    assert_eq!(sent, ["Bearer own"]);
}

#[tokio::test]
async fn a_refused_key_is_sent_once() {
    let server = Server::start(vec![refused(), good()]).await;
    let response = Ask { max_retries: 3, ..Ask::default() }.answer(&adapter(&server)).await;
    assert_eq!(failure(&response).0.code, "provider_unauthorized");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_token_of_an_embedding_is_replaced_once() {
    let vector = Reply::json(&json!({"data": [{"index": 0, "embedding": [1.0]}]}).to_string());
    for (second, is_ok) in [(vector, true), (refused(), false)] {
        let server = Server::start(vec![refused(), second, refused()]).await;
        let options = options(&server).with_authenticator(Tokens::default());
        let embedder = ModelServer::new(options).unwrap().embedder("m").unwrap();
        let cancel = CancellationToken::new();
        let found = embedder.embed(&["x"], EmbeddingPurpose::Query, &cancel).await;
        assert_eq!(found.is_ok(), is_ok);
        let requests = server.requests();
        let sent: Vec<_> = requests.iter().filter_map(|r| r.header("authorization")).collect();
        assert_eq!(sent, ["Bearer token-1", "Bearer token-2"]);
    }
}
