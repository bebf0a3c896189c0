//! Overloads and rate limits in the middle of a conversation.

use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::RetryPolicy;
use helix_agents_llm::ModelServer;

use crate::support::mock::{Answer, Converse, Gemini, Messages, Mock, Part, Responses};
use crate::support::{Reply, Talk, content, failure};

fn call() -> Answer {
    Answer::Says(vec![Part::Thinking("Hm."), Part::Call("c1")])
}

fn text() -> Vec<Part> {
    vec![Part::Thinking("So."), Part::Text("Done.")]
}

/// Returns a server of each API whose second reply is overloaded after some events.
async fn overloaded(events: usize) -> Vec<(Mock, &'static str)> {
    let answers = || vec![call(), Answer::Overloads(events, text()), Answer::Says(text())];
    vec![
        (Mock::start(Messages::of("a"), answers()).await, "claude-fable-5-2"),
        (Mock::start(Responses::of("a"), answers()).await, "gpt-5.6"),
        (Mock::start(Gemini::of("a"), answers()).await, "gemini-3-pro"),
        (Mock::start(Converse::of("a"), answers()).await, "anthropic.claude-fable-5-1"),
    ]
}

#[tokio::test]
async fn an_overload_as_the_first_event_is_retried() {
    for (mock, model) in overloaded(0).await {
        let mut talk = Talk::with(model);
        talk.ask.max_retries = 1;
        talk.step(&mock.adapter()).await;
        let response = talk.step(&mock.adapter()).await;
        assert_eq!(content(&response), "Done.", "{model}");
        assert_eq!(response.failed_attempts.len(), 1, "{model}");
        let requests = mock.server.requests();
        assert_eq!(requests[1].body, requests[2].body, "{model}");
        assert_eq!(mock.problems(), [""; 0], "{model}");
    }
}

/// The fifth event comes after reasoning, which has been delivered.
#[tokio::test]
async fn an_overload_as_the_fifth_event_is_not_retried() {
    let (mock, model) = overloaded(4).await.remove(0);
    let mut talk = Talk::with(model);
    talk.ask.max_retries = 1;
    talk.step(&mock.adapter()).await;
    let response = talk.step(&mock.adapter()).await;
    let (error, should_stop) = failure(&response);
    assert!(error.is(ErrorCode::ProviderUnavailable), "{error}");
    assert!(!should_stop, "the run may repeat the step");
    assert_eq!(mock.server.requests().len(), 2);
    // The repeated step contains nothing of the failed one.
    assert_eq!(content(&talk.step(&mock.adapter()).await), "Done.");
    assert_eq!((mock.problems(), mock.dropped()), (vec![], vec![]));
}

/// Reasoning that is not shown is no output.
#[tokio::test]
async fn an_overload_as_the_fifth_event_is_retried_if_nothing_was_delivered() {
    let hidden = vec![Part::Thinking(""), Part::Text("Done.")];
    let answers = vec![call(), Answer::Overloads(4, hidden.clone()), Answer::Says(hidden)];
    let mock = Mock::start(Messages::of("a"), answers).await;
    let mut talk = Talk::with("claude-fable-5-2");
    talk.ask.max_retries = 1;
    talk.step(&mock.adapter()).await;
    assert_eq!(content(&talk.step(&mock.adapter()).await), "Done.");
    assert_eq!(mock.problems(), [""; 0]);
}

/// A wait of 7 seconds is too long for the policy, so the error is returned. Without the hint, the call would be retried.
#[tokio::test]
async fn each_kind_of_hint_sets_the_wait() {
    let date = "date: Mon, 23 Nov 2026 10:00:00 GMT\r\n";
    let until = format!("{date}retry-after: Mon, 23 Nov 2026 10:00:07 GMT\r\n");
    let info = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Slow down.", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]}}"#;
    for (hint, reply) in [
        ("seconds", Reply::status(429, "retry-after: 7\r\n", "")),
        ("date", Reply::status(429, &until, "")),
        ("milliseconds", Reply::status(429, "retry-after-ms: 7000\r\n", "")),
        ("RetryInfo", Reply::status(429, "", info)),
    ] {
        let answers = vec![call(), Answer::Fails(reply), Answer::Says(text())];
        let mock = Mock::start(Gemini::of("a"), answers).await;
        let policy =
            RetryPolicy::default().base(Duration::from_millis(1)).max(Duration::from_secs(5));
        let adapter = ModelServer::new(mock.options("local").with_retry(policy)).unwrap();
        let mut talk = Talk::with("gemini-3-pro");
        talk.ask.max_retries = 1;
        talk.step(&adapter).await;
        let response = talk.step(&adapter).await;
        let (error, _) = failure(&response);
        assert!(error.is(ErrorCode::ProviderRateLimited), "{hint}: {error}");
        assert_eq!(mock.server.requests().len(), 2, "{hint}");
    }
}
