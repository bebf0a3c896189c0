//! Replies that are one JSON document.

use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_llm::{ModelServer, ServerProfile};

use crate::support::{
    Ask, Reply, Server, adapter, content, failure, finish, options, stream, text,
};

const TEXT: &str = r#"{"id":"x","object":"chat.completion","model":"m1","choices":[{"index":0,
    "message":{"role":"assistant","content":"Hi.","reasoning_content":"Short.","refusal":null},
    "finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;

async fn answer(reply: Reply) -> (helix_agents_core::llm::LlmResponse, Vec<String>) {
    let server = Server::start(vec![reply]).await;
    let mut profile = ServerProfile::compatible();
    profile.stream = false;
    let adapter = ModelServer::new(options(&server).with_profile(profile)).unwrap();
    let ask = Ask::default();
    let response = ask.answer(&adapter).await;
    (response, ask.sink.lines())
}

#[tokio::test]
async fn a_document_is_a_reply() {
    let (response, lines) = answer(Reply::json(TEXT)).await;
    assert_eq!(content(&response), "Hi.");
    assert_eq!(response.usage.input_tokens, 5);
    assert_eq!(response.model.as_deref(), Some("m1"));
    assert_eq!(lines, ["thought Short.", "text Hi."]);
}

#[tokio::test]
async fn calls_of_a_document_need_no_index_and_no_id() {
    let body = r#"{"choices":[{"message":{"content":null,"tool_calls":[
        {"type":"function","function":{"name":"add","arguments":"{\"n\":1}"}},
        {"id":"c2","type":"function","function":{"name":"add","arguments":"{\"n\""}},
        {"id":"c3","type":"function","function":{"name":"subagent__w","arguments":{}}}]},
        "finish_reason":"tool_calls"}]}"#;
    let (response, lines) = answer(Reply::json(body)).await;
    let calls: Vec<&String> = lines.iter().filter(|line| line.starts_with("call")).collect();
    assert_eq!(
        calls,
        [r#"call call_1_0 add {"n":1}"#, r#"call c2 add malformed {"n""#, "call c3 subagent__w {}"]
    );
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
}

#[tokio::test]
async fn both_body_kinds_are_accepted_whichever_was_requested() {
    let events = Reply::events(stream([text("Hi."), finish("stop")]));
    let (response, _) = answer(events).await;
    assert_eq!(content(&response), "Hi.");

    let server = Server::start(vec![Reply::json(TEXT)]).await;
    let response = Ask::default().answer(&adapter(&server)).await;
    assert_eq!(content(&response), "Hi.");
}

#[tokio::test]
async fn documents_without_a_reply_are_failures() {
    let table = [
        (r#"{"error":{"message":"overloaded","code":503}}"#, "provider_unavailable"),
        (r#"{"object":"error","message":"too long","code":400}"#, "provider_rejected"),
        (r#"{"hello":"world"}"#, "provider_protocol"),
        (r#"{"choices":[]}"#, "provider_protocol"),
        ("[1,2]", "provider_protocol"),
        ("not json", "provider_protocol"),
        ("", "provider_protocol"),
        (r#"{"choices":[{"message":{"tool_calls":[{"id":"c"}]}}]}"#, "provider_protocol"),
    ];
    for (body, code) in table {
        let (response, _) = answer(
            Reply::head("application/json")
                .pieces(Some(body).filter(|text| !text.is_empty()))
                .end(),
        )
        .await;
        assert_eq!(failure(&response).0.code, code, "{body}");
        assert!(matches!(response.result, StepResult::Error { .. }));
    }
}
