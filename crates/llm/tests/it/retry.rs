//! The conditions and waits of retries.

use std::time::{Duration, Instant};

use helix_agents_core::llm::RetryPolicy;
use helix_agents_llm::ModelServer;

use crate::support::{
    Ask, Reply, Server, adapter, content, failure, finish, options, stream, text,
};

fn good() -> Reply {
    Reply::events(stream([text("Hi."), finish("stop")]))
}

fn retrying(max_retries: u32) -> Ask {
    Ask { max_retries, ..Ask::default() }
}

#[tokio::test]
async fn temporary_failures_are_retried() {
    let overloaded = r#"{"error":{"message":"overloaded","type":"overloaded_error"}}"#;
    let server = Server::start(vec![
        Reply::status(500, "", ""),
        Reply::status(529, "", overloaded),
        Reply::broken::<String>([]),
        Reply::events([format!("data: {overloaded}\n\n")]),
        Reply::events(["data: {garbage\n\n"]),
        good(),
    ])
    .await;
    let ask = retrying(5);
    let response = ask.answer(&adapter(&server)).await;
    assert_eq!(content(&response), "Hi.");
    assert_eq!(ask.sink.lines(), ["text Hi."]);
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    assert!(requests.iter().all(|request| request.body == requests[0].body));
    let codes = response.failed_attempts.iter().map(|attempt| &*attempt.code);
    let expected = [
        "provider_unavailable",
        "provider_unavailable",
        "provider_stream_cut",
        "provider_unavailable",
        "provider_protocol",
    ];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}

/// The tokens of a failed attempt are charged, so they count.
#[tokio::test]
async fn the_usage_of_failed_attempts_is_kept() {
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":0}}"#;
    let server = Server::start(vec![Reply::broken([format!("{usage}\n\n")]), good()]).await;
    let response = retrying(1).answer(&adapter(&server)).await;
    assert_eq!(content(&response), "Hi.");
    let usages = response.failed_attempts.iter().map(|attempt| attempt.usage.input_tokens);
    assert_eq!(usages.collect::<Vec<_>>(), [7]);
}

#[tokio::test]
async fn it_fails_after_the_allowed_retries() {
    for retries in [0, 1, 3] {
        let server = Server::start(vec![Reply::status(503, "", ""); 9]).await;
        let response = retrying(retries).answer(&adapter(&server)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!(error.code, "provider_unavailable");
        assert!(should_stop);
        assert_eq!(server.requests().len(), retries as usize + 1);
    }
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let quota = r#"{"error":{"message":"no money","code":"insufficient_quota"}}"#;
    for reply in [
        Reply::status(400, "", ""),
        Reply::status(401, "", ""),
        Reply::status(403, "", ""),
        Reply::status(404, "", ""),
        Reply::status(422, "", ""),
        Reply::status(429, "", quota),
        Reply::status(503, "x-should-retry: false\r\n", ""),
    ] {
        let server = Server::start(vec![reply, good()]).await;
        let response = retrying(3).answer(&adapter(&server)).await;
        assert!(failure(&response).1);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn after_delivery_there_is_no_second_attempt() {
    let server =
        Server::start(vec![Reply::broken([format!("data: {}\n\n", text("H"))]), good()]).await;
    let ask = retrying(3);
    let response = ask.answer(&adapter(&server)).await;
    let (error, should_stop) = failure(&response);
    assert_eq!((error.code.as_ref(), should_stop), ("provider_stream_cut", false));
    assert_eq!(server.requests().len(), 1);
    assert_eq!(ask.sink.lines(), ["text H", "error provider_stream_cut"]);
}

/// After the output, only failures that may pass are repeated, by the caller.
#[tokio::test]
async fn after_delivery_a_permanent_failure_ends_the_run() {
    let error = |error: &str| format!(r#"{{"error":{error}}}"#);
    let table = [
        (error(r#"{"code":"server_error"}"#), "provider_unavailable", false),
        (error(r#"{"type":"overloaded_error"}"#), "provider_unavailable", false),
        (error(r#"{"code":"rate_limit_exceeded"}"#), "provider_rate_limited", false),
        ("garbage".to_owned(), "provider_protocol", false),
        (error(r#"{"code":"invalid_api_key"}"#), "provider_unauthorized", true),
        (error(r#"{"type":"invalid_request_error"}"#), "provider_rejected", true),
        (error(r#"{"code":"model_not_found"}"#), "provider_model_not_found", true),
        (error(r#"{"code":"content_filter"}"#), "provider_rejected", true),
        (error(r#"{"code":"insufficient_quota"}"#), "provider_rate_limited", true),
    ];
    for (event, code, stops) in table {
        let reply = Reply::events([text("H"), event].map(|event| format!("data: {event}\n\n")));
        let server = Server::start(vec![reply, good()]).await;
        let ask = retrying(3);
        let response = ask.answer(&adapter(&server)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!((&*error.code, should_stop), (code, stops), "{code}");
        assert_eq!(server.requests().len(), 1, "{code}");
        assert_eq!(ask.sink.lines(), ["text H".to_owned(), format!("error {code}")]);
    }
}

#[tokio::test]
async fn after_delivery_a_reply_that_is_too_large_ends_the_run() {
    let pieces = (0..100).map(|_| format!("data: {}\n\n", text("Hello")));
    let server = Server::start(vec![Reply::events(pieces)]).await;
    let adapter = ModelServer::new(options(&server).with_max_reply_bytes(1000)).unwrap();
    let response = retrying(3).answer(&adapter).await;
    let (error, should_stop) = failure(&response);
    assert_eq!((&*error.code, should_stop), ("too_large", true));
}

#[tokio::test]
async fn it_waits_as_long_as_the_provider_asks() {
    let hint = r#"{"error":{"message":"Please try again in 60ms."}}"#;
    for reply in [
        Reply::status(429, "retry-after-ms: 60\r\nretry-after: 9\r\n", ""),
        Reply::status(503, "retry-after: 0.06\r\n", ""),
        Reply::status(429, "", hint),
    ] {
        let server = Server::start(vec![reply, good()]).await;
        let started = Instant::now();
        let response = retrying(1).answer(&adapter(&server)).await;
        assert_eq!(content(&response), "Hi.");
        assert!(started.elapsed() >= Duration::from_millis(60));
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_returned_to_the_caller() {
    let server = Server::start(vec![Reply::status(429, "retry-after: 3600\r\n", ""), good()]).await;
    let response = retrying(3).answer(&adapter(&server)).await;
    assert_eq!(failure(&response).0.code, "provider_rate_limited");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn default_waits_are_at_least_half_of_the_policys() {
    let mut firsts = Vec::new();
    for _ in 0..3 {
        let server = Server::start(vec![Reply::status(500, "", ""), good()]).await;
        let policy = RetryPolicy::default().base(Duration::from_millis(40));
        let adapter = ModelServer::new(options(&server).with_retry(policy)).unwrap();
        let started = Instant::now();
        retrying(1).answer(&adapter).await;
        firsts.push(started.elapsed());
    }
    assert!(firsts.iter().all(|wait| *wait >= Duration::from_millis(20)), "{firsts:?}");
}

#[tokio::test]
async fn an_immediate_retry_still_waits_as_the_policy_says() {
    for header in ["retry-after: 0\r\n", "retry-after-ms: 1\r\n"] {
        let server = Server::start(vec![Reply::status(429, header, ""), good()]).await;
        let policy = RetryPolicy::default().base(Duration::from_millis(40));
        let adapter = ModelServer::new(options(&server).with_retry(policy)).unwrap();
        let started = Instant::now();
        let response = retrying(1).answer(&adapter).await;
        assert_eq!(content(&response), "Hi.");
        assert!(started.elapsed() >= Duration::from_millis(20), "{:?}", started.elapsed());
    }
}
