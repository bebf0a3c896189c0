//! Replies of Converse: binary frames, and reasoning that is sent back to its own model only.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::ModelReply;
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::message::{Media, Message, UserMessage};
use helix_agents_core::step::StopReason;
use helix_agents_llm::{ApiFormat, ModelServer};
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, adapter_of, event_frame, failure, frame};

/// Returns a reply with reasoning, a text and a call.
fn reply() -> Reply {
    let delta = |index: u32, delta: Value| {
        event_frame("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta}))
    };
    let call = json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "lookup"}}});
    let frames = [
        event_frame("messageStart", &json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "Hm."}})),
        delta(0, json!({"reasoningContent": {"signature": "sig"}})),
        delta(1, json!({"text": "Look"})),
        delta(1, json!({"text": "ing."})),
        event_frame("contentBlockStart", &call),
        delta(2, json!({"toolUse": {"input": "{\"key\":"}})),
        delta(2, json!({"toolUse": {"input": "1}"}})),
        event_frame("messageStop", &json!({"stopReason": "tool_use"})),
        event_frame(
            "metadata",
            &json!({"usage": {"inputTokens": 4, "outputTokens": 5, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 1}}),
        ),
    ];
    Reply::head("application/vnd.amazon.eventstream").pieces(frames).end()
}

fn adapter(server: &Server) -> ModelServer {
    adapter_of(server, ApiFormat::BedrockConverse)
}

#[tokio::test]
async fn reasoning_is_sent_back_to_its_own_model_only() {
    let server = Server::start(vec![reply(), reply(), reply()]).await;
    let adapter = adapter(&server);
    let mut ask = Ask { config: LlmConfig::new("local:m1:0"), ..Ask::default() };
    let response = ask.answer(&adapter).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
    let usage = (response.usage.input_tokens, response.usage.output_tokens);
    assert_eq!((usage, response.usage.cached_tokens), ((7, 5), 2));
    assert_eq!(
        ask.sink.lines(),
        [
            "thinking Hm.",
            "text Look",
            "text ing.",
            "start 0 lookup",
            "args 0 {\"key\":",
            "args 0 1}",
            "call t1 lookup {\"key\":1}"
        ]
    );

    let message = ModelReply::from_response(1, response, 0).message.unwrap();
    ask.messages.push(Message::Assistant(Arc::clone(&message)).into());
    ask.answer(&adapter).await;
    ask.config = LlmConfig::new("local:m2");
    ask.answer(&adapter).await;

    let requests = server.requests();
    assert!(requests[0].head.starts_with("POST /v1/model/m1%3A0/converse-stream "));
    let reasoning =
        json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}});
    let text = json!({"text": "Looking."});
    let call = json!({"toolUse": {"toolUseId": "t1", "name": "lookup", "input": {"key": 1}}});
    let sent = |request: usize| requests[request].json()["messages"][1]["content"].clone();
    assert_eq!(sent(1), json!([reasoning, text, call]));
    assert_eq!(sent(2), json!([text, call]));
}

#[tokio::test]
async fn a_file_that_the_api_cannot_take_is_mentioned() {
    let server = Server::start(vec![reply()]).await;
    let mut ask = Ask::default();
    let user =
        UserMessage::new("Look.").attach(Media::from_url("image/png", "https://example.com/a"));
    ask.messages = vec![Message::User(user).into()];
    ask.answer(&adapter(&server)).await;
    let expected = json!([
        {"text": "Look."},
        {"text": "(a file of type image/png that cannot be shown here)"},
    ]);
    assert_eq!(server.requests()[0].json()["messages"][0]["content"], expected);
}

#[tokio::test]
async fn every_exception_in_a_stream_is_classified() {
    let table = [
        ("throttlingException", "provider_rate_limited", true),
        ("modelNotReadyException", "provider_rate_limited", true),
        ("internalServerException", "provider_unavailable", true),
        ("modelStreamErrorException", "provider_unavailable", true),
        ("modelTimeoutException", "provider_unavailable", true),
        ("serviceUnavailableException", "provider_unavailable", true),
        ("InternalFailure", "provider_unavailable", true),
        ("validationException", "provider_rejected", false),
        ("resourceNotFoundException", "provider_model_not_found", false),
        ("accessDeniedException", "provider_unauthorized", false),
    ];
    for (kind, code, is_transient) in table {
        let text = json!({"contentBlockIndex": 0, "delta": {"text": "So"}});
        let exception = frame(&[(":exception-type", kind)], &json!({"message": "Why."}));
        let pieces = [event_frame("contentBlockDelta", &text), exception];
        let reply = Reply::head("application/vnd.amazon.eventstream").pieces(pieces).end();
        let server = Server::start(vec![reply]).await;
        let response = Ask::default().answer(&adapter(&server)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!((&*error.code, should_stop), (code, !is_transient), "{kind}");
    }
}

#[tokio::test]
async fn an_error_is_understood_from_its_status_its_frame_or_its_header() {
    let throttled =
        frame(&[(":exception-type", "throttlingException")], &json!({"message": "Slow down."}));
    let start = event_frame("messageStart", &json!({"role": "assistant"}));
    let replies = vec![
        Reply::head("application/vnd.amazon.eventstream").pieces([start, throttled]).end(),
        Reply::status(
            400,
            "x-amzn-errortype: ValidationException:http://internal\r\n",
            r#"{"message":"Bad."}"#,
        ),
    ];
    let server = Server::start(replies).await;
    let adapter = adapter(&server);
    let ask = Ask::default();
    let response = ask.answer(&adapter).await;
    let (error, _) = failure(&response);
    assert_eq!(&*error.code, ErrorCode::ProviderRateLimited.as_str());
    assert_eq!(error.detail.as_deref(), Some("Slow down."));
    let response = ask.answer(&adapter).await;
    let (error, _) = failure(&response);
    assert_eq!(&*error.code, ErrorCode::ProviderRejected.as_str());
    assert_eq!(error.detail.as_deref(), Some("Bad."));
}
