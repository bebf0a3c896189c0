//! Replies that the provider reports as malformed: no call of them runs, and the model is asked again.

use helix_agents_llm::{ApiFormat, ModelServer, ServerProfile};
use serde_json::{Value, json};

use crate::support::{
    Ask, Reply, Server, adapter, adapter_of, content, delta, event_frame, failure, finish, options,
    stream, text,
};

const GEMINI: [&str; 4] = [
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
];

const CONVERSE: [&str; 2] = ["malformed_tool_use", "malformed_model_output"];

fn events(documents: &[Value]) -> Reply {
    Reply::events(documents.iter().map(|document| format!("data: {document}\n\n")))
}

/// Returns the end of a reply of Gemini, with the tokens that the provider charges.
fn gemini(parts: &Value, reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3}})
}

fn converse(content: &[(u32, Value)], reason: &str) -> Reply {
    let delta = |(index, delta): &(u32, Value)| {
        event_frame("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta}))
    };
    let end = [
        event_frame("messageStop", &json!({"stopReason": reason})),
        event_frame("metadata", &json!({"usage": {"inputTokens": 5, "outputTokens": 3}})),
    ];
    let frames = content.iter().map(delta).chain(end);
    Reply::head("application/vnd.amazon.eventstream").pieces(frames).end()
}

/// Asks once with one retry: the malformed reply is repeated, and its tokens count.
async fn check_repeated(format: ApiFormat, malformed: Reply, good: Reply, reason: &str) {
    let server = Server::start(vec![malformed, good]).await;
    let ask = Ask { max_retries: 1, ..Ask::default() };
    let response = ask.answer(&adapter_of(&server, format)).await;
    assert_eq!(content(&response), "Yes.", "{reason}");
    assert_eq!(ask.sink.lines(), ["text Yes."], "{reason}");
    assert_eq!(response.failed_attempts.len(), 1, "{reason}");
    let failed = &response.failed_attempts[0];
    assert_eq!(failed.code, "provider_protocol", "{reason}");
    assert_eq!((failed.usage.input_tokens, failed.usage.output_tokens), (5, 3), "{reason}");
    assert_eq!(server.requests().len(), 2, "{reason}");
}

#[tokio::test]
async fn a_malformed_reply_without_output_is_asked_for_again() {
    let good = gemini(&json!([{"text": "Yes."}]), "STOP");
    for reason in GEMINI {
        let malformed = events(&[gemini(&json!([]), reason)]);
        let good = events(std::slice::from_ref(&good));
        check_repeated(ApiFormat::GeminiGenerate, malformed, good, reason).await;
    }
    for reason in CONVERSE {
        let good = converse(&[(0, json!({"text": "Yes."}))], "end_turn");
        check_repeated(ApiFormat::BedrockConverse, converse(&[], reason), good, reason).await;
    }
}

#[tokio::test]
async fn a_malformed_reply_that_was_shown_is_an_error_of_the_step() {
    let call = json!({"functionCall": {"name": "lookup", "args": {"key": 1}}});
    for reason in GEMINI {
        let document = gemini(&json!([{"text": "So"}, call]), reason);
        let server = Server::start(vec![events(&[document])]).await;
        let ask = Ask { max_retries: 1, ..Ask::default() };
        let response = ask.answer(&adapter_of(&server, ApiFormat::GeminiGenerate)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!((&*error.code, should_stop), ("provider_protocol", false), "{reason}");
        let message = "the provider `local` reports that the model wrote a malformed reply";
        assert_eq!(error.message, message);
        assert_eq!(server.requests().len(), 1, "{reason}");
        let lines = ["text So", "start 0 lookup", "error provider_protocol"];
        assert_eq!(ask.sink.lines(), lines, "no complete call is announced");
        assert_eq!(response.usage.input_tokens, 5);
    }
    for reason in CONVERSE {
        let reply = converse(&[(0, json!({"text": "So"}))], reason);
        let server = Server::start(vec![reply]).await;
        let ask = Ask { max_retries: 1, ..Ask::default() };
        let response = ask.answer(&adapter_of(&server, ApiFormat::BedrockConverse)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!((&*error.code, should_stop), ("provider_protocol", false), "{reason}");
        assert_eq!(ask.sink.lines(), ["text So", "error provider_protocol"]);
    }
}

/// A later `STOP` does not make the call complete.
#[tokio::test]
async fn a_malformed_reply_stays_malformed() {
    let call = json!({"functionCall": {"name": "lookup", "args": {}}});
    let documents = [gemini(&json!([call]), GEMINI[0]), gemini(&json!([]), "STOP")];
    let server = Server::start(vec![events(&documents)]).await;
    let response = Ask::default().answer(&adapter_of(&server, ApiFormat::GeminiGenerate)).await;
    assert_eq!(failure(&response).0.code, "provider_protocol");
}

#[tokio::test]
async fn a_malformed_document_is_asked_for_again() {
    let malformed = Reply::json(&gemini(&json!([]), GEMINI[0]).to_string());
    let good = Reply::json(&gemini(&json!([{"text": "Yes."}]), "STOP").to_string());
    check_repeated(ApiFormat::GeminiGenerate, malformed, good, "a document").await;
}

/// The request lacks a signature, so repeating it cannot help.
#[tokio::test]
async fn a_reply_that_gemini_ends_for_a_missing_signature_is_a_rejected_request() {
    let call = json!({"functionCall": {"name": "lookup", "args": {}}});
    for parts in [json!([]), json!([call])] {
        let reply = events(&[gemini(&parts, "MISSING_THOUGHT_SIGNATURE")]);
        let server = Server::start(vec![reply]).await;
        let ask = Ask { max_retries: 1, ..Ask::default() };
        let response = ask.answer(&adapter_of(&server, ApiFormat::GeminiGenerate)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!((&*error.code, should_stop), ("provider_rejected", true), "{parts}");
        assert!(error.detail.as_deref().unwrap().contains("thought signature"), "{error:?}");
        assert_eq!(server.requests().len(), 1, "{parts}");
        assert!(ask.sink.lines().iter().all(|line| !line.starts_with("call")), "{parts}");
    }
}

#[tokio::test]
async fn a_finish_reason_of_chat_completions_that_reports_a_failure_is_one() {
    let table = [
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "provider_protocol"),
        ("error", "provider_unavailable"),
        ("insufficient_system_resource", "provider_unavailable"),
    ];
    for (reason, code) in table {
        let call = delta(
            r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"add","arguments":"{}"}}]}"#,
        );
        let failed = Reply::events(stream([call, finish(reason)]));
        let server = Server::start(vec![failed]).await;
        let ask = Ask::default();
        let response = ask.answer(&adapter(&server)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!((&*error.code, should_stop), (code, false), "{reason}");
        assert!(ask.sink.lines().iter().all(|line| !line.starts_with("call")), "{reason}");

        let good = Reply::events(stream([text("Yes."), finish("stop")]));
        let server = Server::start(vec![Reply::events(stream([finish(reason)])), good]).await;
        let ask = Ask { max_retries: 1, ..Ask::default() };
        assert_eq!(content(&ask.answer(&adapter(&server)).await), "Yes.", "{reason}");
    }
}

/// Groq checks the arguments against the schema, and reports a mismatch as an invalid request.
#[tokio::test]
async fn a_call_that_the_server_rejects_is_asked_for_again() {
    let error = r#"{"error":{"message":"Tool call validation failed","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"{}"}}"#;
    for failed in
        [Reply::status(400, "", error), Reply::events([format!("event: error\ndata: {error}\n\n")])]
    {
        let good = Reply::events(stream([text("Yes."), finish("stop")]));
        let server = Server::start(vec![failed, good]).await;
        let profile = ServerProfile::compatible();
        let adapter = ModelServer::new(options(&server).with_profile(profile)).unwrap();
        let ask = Ask { max_retries: 1, ..Ask::default() };
        let response = ask.answer(&adapter).await;
        assert_eq!(content(&response), "Yes.");
        assert_eq!(response.failed_attempts[0].code, "provider_protocol");
    }
}
