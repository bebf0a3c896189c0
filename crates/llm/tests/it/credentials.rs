//! Refused access tokens are replaced once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::embed::{Embedder as _, EmbeddingPurpose};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmResponse;
use helix_agents_llm::{ApiFormat, ApiKey, Authenticator, ModelServer, Timeouts};
use serde_json::json;
use tokio::sync::Notify;
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
        // A concurrent call may have discarded it already.
        if *token == ApiKey::new(&format!("token-{}", *discarded + 1)) {
            *discarded += 1;
        }
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

/// Fails with this code after the first token was refused.
#[derive(Debug)]
struct Once(ErrorCode, AtomicBool);

impl Once {
    fn then(code: ErrorCode) -> Self {
        Self(code, AtomicBool::new(false))
    }
}

#[async_trait]
impl Authenticator for Once {
    async fn token(&self) -> Result<ApiKey> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(Error::new(self.0, "no token is left")),
            false => Ok("token-1".into()),
        }
    }

    async fn discard(&self, _: &ApiKey) {
        self.1.store(true, Ordering::SeqCst);
    }
}

/// Never returns from `discard`, or from `token` after a token was discarded.
#[derive(Debug)]
struct Stuck {
    in_discard: bool,
    is_discarded: AtomicBool,
    stuck: Arc<Notify>,
}

impl Stuck {
    async fn forever(&self) {
        self.stuck.notify_one();
        std::future::pending().await
    }
}

#[async_trait]
impl Authenticator for Stuck {
    async fn token(&self) -> Result<ApiKey> {
        if self.is_discarded.load(Ordering::SeqCst) {
            self.forever().await;
        }
        Ok("token-1".into())
    }

    async fn discard(&self, _: &ApiKey) {
        self.is_discarded.store(true, Ordering::SeqCst);
        if self.in_discard {
            self.forever().await;
        }
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
    // The refusal says more than a permanent error of the authenticator.
    for (code, expected) in [
        (ErrorCode::ConfigInvalid, "provider_unauthorized"),
        (ErrorCode::ProviderUnavailable, "provider_unavailable"),
    ] {
        let replies = vec![refused(), good()];
        let (response, sent) = call(replies, Once::then(code), Ask::default()).await;
        assert_eq!(failure(&response).0.code, expected);
        assert_eq!(sent.len(), 1);
    }
}

#[tokio::test]
async fn a_token_is_replaced_once_per_call_and_not_per_attempt() {
    let unavailable = Reply::status(503, "", "{}");
    let replies = vec![refused(), unavailable.clone(), refused(), unavailable, refused()];
    let ask = Ask { max_retries: 3, ..Ask::default() };
    let (response, sent) = call(replies, Tokens::default(), ask).await;
    assert_eq!(failure(&response).0.code, "provider_unauthorized");
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2", "Bearer token-2"]);
}

#[tokio::test]
async fn a_refusal_that_may_pass_is_retried_with_the_new_token() {
    let passing = Reply::status(401, "x-should-retry: true\r\n", "{}");
    let ask = Ask { max_retries: 1, ..Ask::default() };
    let (response, sent) = call(vec![passing; 5], Tokens::default(), ask).await;
    assert_eq!(failure(&response).0.code, "provider_unavailable");
    assert_eq!(response.failed_attempts.len(), 1);
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2", "Bearer token-2"]);
}

#[tokio::test]
async fn a_call_can_be_cancelled_while_its_token_is_replaced() {
    for in_discard in [true, false] {
        let server = Server::start(vec![refused(), good()]).await;
        let stuck = Arc::new(Notify::new());
        let tokens =
            Stuck { in_discard, is_discarded: AtomicBool::new(false), stuck: Arc::clone(&stuck) };
        let adapter = ModelServer::new(options(&server).with_authenticator(tokens)).unwrap();
        let ask = Ask { max_retries: 3, ..Ask::default() };
        let cancelling = async {
            stuck.notified().await;
            ask.cancel.cancel();
        };
        let (result, ()) = tokio::join!(ask.of(&adapter), cancelling);
        assert_eq!(result.unwrap_err().code(), ErrorCode::Cancelled);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn concurrent_calls_replace_the_same_token_once() {
    let is_old = |header: Option<String>| header.as_deref() == Some("Bearer token-1");
    let server = Server::answering(move |request| match is_old(request.header("authorization")) {
        true => refused(),
        false => good(),
    })
    .await;
    let tokens = options(&server).with_authenticator(Tokens::default());
    let adapter = ModelServer::new(tokens).unwrap();
    let asks = [Ask::default(), Ask::default()];
    // Both calls take their token before either sends its request.
    let (first, second) = tokio::join!(asks[0].answer(&adapter), asks[1].answer(&adapter));
    assert_eq!((content(&first), content(&second)), ("Hi.", "Hi."));
    let requests = server.requests();
    let mut sent: Vec<_> = requests.iter().filter_map(|r| r.header("authorization")).collect();
    sent.sort();
    assert_eq!(sent, ["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2"]);
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
    let unavailable = Reply::status(503, "", "{}");
    for (replies, tokens, is_ok) in [
        (vec![refused(), vector.clone()], &[1, 2][..], true),
        (vec![refused(), refused(), vector.clone()], &[1, 2], false),
        (vec![refused(), unavailable, refused(), vector], &[1, 2, 2], false),
    ] {
        let server = Server::start(replies).await;
        let options = options(&server).with_authenticator(Tokens::default());
        let embedder = ModelServer::new(options).unwrap().embedder("m").unwrap();
        let cancel = CancellationToken::new();
        let found = embedder.embed(&["x"], EmbeddingPurpose::Query, &cancel).await;
        assert_eq!(found.is_ok(), is_ok);
        assert_eq!(sent_tokens(&server), tokens);
    }
}

#[tokio::test]
async fn a_refused_token_of_a_list_of_models_is_replaced_once() {
    let page = |id: &str, has_more: bool| {
        let page = json!({"data": [{"id": id}], "has_more": has_more, "last_id": id});
        Reply::json(&page.to_string())
    };
    for (replies, tokens, expected) in [
        (vec![refused(), page("a", false)], &[1, 2][..], Ok(vec!["a"])),
        (vec![page("a", true), refused(), page("b", false)], &[1, 1, 2], Ok(vec!["a", "b"])),
        (
            vec![refused(), page("a", true), refused()],
            &[1, 2, 2],
            Err(ErrorCode::ProviderUnauthorized),
        ),
    ] {
        let server = Server::start(replies).await;
        let options = options(&server).with_format(ApiFormat::AnthropicMessages);
        let server_of_models =
            ModelServer::new(options.with_authenticator(Tokens::default())).unwrap();
        let found = server_of_models.models(Duration::from_secs(5)).await;
        let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
        assert_eq!(found.map_err(|error| error.code()), expected);
        assert_eq!(sent_tokens(&server), tokens);
    }
}

#[tokio::test]
async fn a_stuck_authenticator_ends_the_attempt() {
    for in_discard in [false, true] {
        let server = Server::start(vec![refused()]).await;
        let (is_discarded, stuck) = (AtomicBool::new(false), Arc::new(Notify::new()));
        let stuck = Stuck { in_discard, is_discarded, stuck };
        let timeouts = Timeouts::default().with_first_byte(Duration::from_millis(500));
        let options = options(&server).with_authenticator(stuck).with_timeouts(timeouts);
        let ask = Ask { max_retries: 0, ..Ask::default() };
        let response = ask.answer(&ModelServer::new(options).unwrap()).await;
        assert_eq!(failure(&response).0.code, "provider_timeout");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn the_time_limit_of_a_list_of_models_includes_a_new_token() {
    let server = Server::start(vec![refused()]).await;
    let stuck = Stuck {
        in_discard: true,
        is_discarded: AtomicBool::new(false),
        stuck: Arc::new(Notify::new()),
    };
    let models = ModelServer::new(options(&server).with_authenticator(stuck)).unwrap();
    let list = models.models(Duration::from_millis(500));
    let listed = tokio::time::timeout(Duration::from_secs(30), list).await.unwrap();
    let error = listed.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProviderTimeout);
    assert!(error.message().starts_with("the authenticator"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

/// Returns the numbers of the tokens that were sent.
fn sent_tokens(server: &Server) -> Vec<u32> {
    let number = |header: String| header.strip_prefix("Bearer token-")?.parse().ok();
    let requests = server.requests();
    requests.iter().filter_map(|request| number(request.header("authorization")?)).collect()
}
