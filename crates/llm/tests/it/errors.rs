//! Failures of the provider, as the caller sees them.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_llm::{ApiKey, ModelServer, ModelServerOptions};

use crate::support::{
    Act, Ask, Reply, Server, adapter, delta, failure, finish, options, stream, text,
};

/// Plays one reply without retries. Returns the code, the message, whether to stop, and the sink's
/// lines.
async fn fail(reply: Reply) -> (String, String, bool, Vec<String>) {
    let server = Server::start(vec![reply]).await;
    let ask = Ask::default();
    let response = ask.answer(&adapter(&server)).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::Error));
    assert!(response.usage.is_zero());
    assert_eq!(server.requests().len(), 1);
    let (error, should_stop) = failure(&response);
    (error.code.to_string(), error.message.clone(), should_stop, ask.sink.lines())
}

fn events(data: &[&str]) -> Vec<String> {
    data.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[tokio::test]
async fn a_wrong_key_is_reported_without_the_key() {
    let body = r#"{"error":{"message":"Incorrect API key provided: key-of-the-tests","code":"invalid_api_key"}}"#;
    let (code, message, should_stop, lines) = fail(Reply::status(401, "", body)).await;
    assert_eq!(code, "provider_unauthorized");
    assert_eq!(message, "the provider `local` rejected the API key or its permissions (401)");
    assert!(should_stop);
    assert_eq!(lines, [""; 0], "nothing was delivered, so no error is announced");
}

#[tokio::test]
async fn an_error_page_of_a_proxy_is_not_repeated() {
    let (code, message, ..) = fail(Reply::status(502, "", "<html>secret host</html>")).await;
    assert_eq!(code, "provider_unavailable");
    assert_eq!(message, "the provider `local` failed (502)");
}

#[tokio::test]
async fn quotes_of_the_prompt_are_not_repeated() {
    let body = r#"{"error":{"message":"1 validation error: input_value={'role': 'system', 'content': 'You know the launch code 4711.'}","type":"internal_server_error"}}"#;
    let server = Server::start(vec![Reply::status(500, "", body)]).await;
    let prompt = helix_agents_core::message::Message::System {
        content: "You know the launch code 4711.".to_owned(),
    };
    let ask = Ask { prompt: prompt.into(), ..Ask::default() };
    let response = ask.answer(&adapter(&server)).await;
    let error = failure(&response).0;
    let detail = error.detail.as_deref().unwrap();
    assert!(detail.contains("1 validation error") && !detail.contains("4711"), "{detail}");
    // A provider's message about a request may quote it in unknown ways.
    assert_eq!(error.message, "the provider `local` failed (500)");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let reply = Reply::status(307, "location: http://127.0.0.1:9/elsewhere\r\n", "");
    let (code, message, ..) = fail(reply).await;
    assert_eq!(code, "provider_rejected");
    assert!(message.contains("307"), "{message}");
}

#[tokio::test]
async fn a_stream_cut_before_its_first_chunk_is_a_stream_cut() {
    for reply in [
        Reply::events::<String>([]),
        Reply::broken::<String>([]),
        Reply::events(["data: {\"choices\":[{\"delta\":{\"cont"]),
        Reply::events(events(&[&delta(r#"{"role":"assistant"}"#)])),
    ] {
        let (code, _, should_stop, _) = fail(reply).await;
        assert_eq!(code, "provider_stream_cut");
        assert!(should_stop, "no retry is left");
    }
}

#[tokio::test]
async fn a_failure_after_delivery_is_announced_and_retryable() {
    let error = r#"{"error":{"message":"The server is overloaded","type":"server_error"}}"#;
    let first = text("Hel");
    let table = [
        (Reply::broken(events(&[&first])), "provider_stream_cut"),
        (Reply::events(events(&[&first])), "provider_stream_cut"),
        (Reply::events(events(&[&first, "{oops"])), "provider_protocol"),
        (Reply::events(events(&[&first, "[]"])), "provider_protocol"),
        (Reply::events(events(&[&first, "42"])), "provider_protocol"),
        (Reply::events(events(&[&first, r#"{"choices":7}"#])), "provider_protocol"),
        (Reply::events(events(&[&first, error])), "provider_unavailable"),
        (
            Reply::events([events(&[&first]).concat(), format!("data: {error}")]),
            "provider_unavailable",
        ),
    ];
    for (reply, expected) in table {
        let (code, _, should_stop, lines) = fail(reply).await;
        assert_eq!(code, expected);
        assert!(!should_stop, "{expected}");
        assert_eq!(lines, ["text Hel".to_owned(), format!("error {expected}")]);
    }
}

#[tokio::test]
async fn a_cut_call_is_a_failure_not_a_call() {
    let call = delta(
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"add","arguments":"{\"a\":1}"}}]}"#,
    );
    let (code, _, should_stop, lines) = fail(Reply::broken(events(&[&call]))).await;
    assert_eq!((code.as_str(), should_stop), ("provider_stream_cut", false));
    assert_eq!(lines, ["start 0 add", r#"args 0 {"a":1}"#, "error provider_stream_cut"]);
}

#[tokio::test]
async fn a_web_page_is_not_a_reply() {
    let page = Reply::head("text/html").piece("<html>Log in</html>").end();
    let (code, message, ..) = fail(page).await;
    assert_eq!(code, "provider_protocol");
    assert!(!message.contains("Log in"));
}

#[tokio::test]
async fn a_response_that_is_not_http_is_a_failure() {
    let (code, ..) = fail(Reply(vec![Act::Send(b"SSH-2.0-server\r\n".to_vec()), Act::Close])).await;
    assert_eq!(code, "provider_unavailable");
}

#[tokio::test]
async fn a_closed_port_is_unavailable_with_host_port_and_cause_only() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let options = ModelServerOptions::new("local", &format!("http://127.0.0.1:{port}/secret/v1"));
    let response = Ask::default().answer(&ModelServer::new(options).unwrap()).await;
    let (error, should_stop) = failure(&response);
    assert_eq!(error.code, "provider_unavailable");
    assert!(should_stop);
    let message = format!("the provider `local` cannot be reached at 127.0.0.1:{port}: ");
    assert!(error.message.starts_with(&message), "{error}");
    assert!(error.message.contains("refused") && !error.message.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_reply_over_the_limit_is_refused() {
    let long = text(&"x".repeat(500));
    let server = Server::start(vec![Reply::events(stream([&long, &long, &finish("stop")]))]).await;
    let options = options(&server).with_max_reply_bytes(1000);
    let ask = Ask { max_retries: 3, ..Ask::default() };
    let response = ask.answer(&ModelServer::new(options).unwrap()).await;
    assert_eq!(failure(&response).0.code, "too_large");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_endless_error_body_is_bounded_in_memory_and_time() {
    let head =
        "HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut reply = Reply(vec![Act::Send(head.as_bytes().to_vec())]);
    for _ in 0..40 {
        reply = reply.piece(vec![b'x'; 4096]);
    }
    let (code, ..) = fail(reply.then(Act::AwaitClose)).await;
    assert_eq!(code, "provider_rejected");
}

#[test]
fn addresses_and_keys_that_cannot_be_used_are_refused() {
    #[track_caller]
    fn check(url: &str, key: Option<&str>, word: Option<&str>) {
        let mut options = ModelServerOptions::new("p", url);
        options.api_key = key.map(ApiKey::new);
        match (ModelServer::new(options), word) {
            (Ok(_), None) => {}
            (Err(error), Some(word)) => {
                assert_eq!(error.code(), ErrorCode::ConfigInvalid);
                assert!(error.message().contains(word), "{error}");
                assert!(!error.to_string().contains("hunter2"), "{error}");
            }
            (result, _) => panic!("{url}: {result:?}"),
        }
    }
    check("https://example.com/v1", Some("k"), None);
    check("http://127.0.0.1:1/v1/", Some("k"), None);
    check("http://[::1]:1/v1", Some("k"), None);
    check("http://LOCALHOST:1/v1", Some("k"), None);
    check("http://192.168.1.7/v1", None, None);
    check("http://192.168.1.7/v1", Some("k"), Some("plain HTTP"));
    check("http://localhost.example.com/v1", Some("k"), Some("plain HTTP"));
    check("http://127.0.0.1.example.com/v1", Some("k"), Some("plain HTTP"));
    check("ftp://example.com", None, Some("http://"));
    check("example.com/v1", None, Some("not a URL"));
    check("https://me:hunter2@example.com/v1", None, Some("credentials"));
    check("https://example.com/v1", Some("hunter2\nx"), Some("characters"));

    let allowed = ModelServerOptions::new("p", "http://192.168.1.7/v1").with_api_key("k");
    ModelServer::new(allowed.with_allow_http()).unwrap();
    assert!(ModelServer::new(ModelServerOptions::new("a:b", "https://x.example")).is_err());
}

#[test]
fn keys_are_in_no_debug_output() {
    let options = ModelServerOptions::new("p", "https://example.com/v1").with_api_key("hunter2");
    let adapter = ModelServer::new(options.clone()).unwrap();
    let text = format!("{options:?} {adapter:?} {:?}", ApiKey::new("hunter2"));
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_response_is_either_an_error_or_a_reply() {
    let server = Server::start(vec![Reply::status(404, "", "{}")]).await;
    let response = Ask::default().answer(&adapter(&server)).await;
    assert!(matches!(response.result, StepResult::Error { should_stop: true, .. }));
    assert_eq!(response.raw_stop_reason, None);
}
