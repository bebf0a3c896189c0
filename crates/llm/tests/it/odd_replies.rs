//! Replies with parts that cannot be used as they are: calls without an id of their own, arguments that are not an
//! object, and empty reasoning.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::ModelReply;
use helix_agents_core::message::{AssistantMessage, Message};
use helix_agents_llm::{ApiFormat, ServerProfile};
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, adapter_of, failure};

/// A call as a server sends it: its id, the name of the tool, and the arguments.
type Call<'a> = (&'a str, &'a str, Value);

fn chat(calls: &[Call<'_>]) -> Value {
    let call = |(id, name, arguments): &Call<'_>| {
        json!({"id": id, "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})
}

fn responses(calls: &[Call<'_>]) -> Value {
    let call = |(id, name, arguments): &Call<'_>| {
        json!({"type": "function_call", "call_id": id, "name": name,
            "arguments": arguments.to_string()})
    };
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({"object": "response", "status": "completed", "output": calls})
}

fn messages(calls: &[Call<'_>]) -> Value {
    let call = |(id, name, input): &Call<'_>| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({"type": "message", "content": calls, "stop_reason": "tool_use"})
}

fn gemini(calls: &[Call<'_>]) -> Value {
    let call = |(id, name, args): &Call<'_>| json!({"functionCall": {"id": id, "name": name, "args": args}});
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({"candidates": [{"content": {"parts": calls}, "finishReason": "STOP"}]})
}

fn converse(calls: &[Call<'_>]) -> Value {
    let call = |(id, name, input): &Call<'_>| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}});
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({"output": {"message": {"content": calls}}, "stopReason": "tool_use"})
}

/// An API, its reply with calls, and the pointers to the last message of a request and to a call's arguments.
type Api = (ApiFormat, fn(&[Call<'_>]) -> Value, &'static str, &'static str);

fn apis() -> [Api; 5] {
    let profile = ServerProfile::compatible();
    [
        (
            ApiFormat::ChatCompletions(profile),
            chat,
            "/messages/2/tool_calls",
            "/function/arguments",
        ),
        (ApiFormat::OpenAiResponses, responses, "/input", "/arguments"),
        (ApiFormat::AnthropicMessages, messages, "/messages/1/content", "/input"),
        (ApiFormat::GeminiGenerate, gemini, "/contents/1/parts", "/functionCall/args"),
        (ApiFormat::BedrockConverse, converse, "/messages/1/content", "/toolUse/input"),
    ]
}

/// Returns the message of a reply, and the request that sends it back.
async fn sent_back(format: ApiFormat, document: &Value) -> (AssistantMessage, Value) {
    let replies = vec![Reply::json(&document.to_string()), Reply::status(400, "", "{}")];
    let server = Server::start(replies).await;
    let adapter = adapter_of(&server, format);
    let mut ask = Ask::default();
    let response = ask.answer(&adapter).await;
    let message = ModelReply::from_response(1, response, 0).message.unwrap();
    ask.messages.push(Message::Assistant(Arc::clone(&message)).into());
    ask.answer(&adapter).await;
    (AssistantMessage::clone(&message), server.requests()[1].json())
}

#[tokio::test]
async fn every_call_has_an_id_of_its_own() {
    let calls = [("a", "add", json!({})), ("", "add", json!({})), ("a", "add", json!({}))];
    for (format, document, ..) in apis() {
        let (message, _) = sent_back(format.clone(), &document(&calls)).await;
        let ids: Vec<&str> = message.tool_calls.iter().map(|call| call.wire_id()).collect();
        assert_eq!(ids, ["a", "call_1_1", "call_1_2"], "{format:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_sent_back_as_an_empty_one() {
    let calls = [("a", "add", json!([1])), ("b", "add", json!({"n": 1}))];
    for (format, document, list, pointer) in apis() {
        let (_, request) = sent_back(format.clone(), &document(&calls)).await;
        let sent = request.pointer(list).unwrap().as_array().unwrap();
        let sent: Vec<String> = sent
            .iter()
            .filter_map(|call| call.pointer(pointer))
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        assert_eq!(sent, ["{}", r#"{"n":1}"#], "{format:?}");
    }
}

#[tokio::test]
async fn a_call_without_a_name_is_a_failure() {
    for (format, document, ..) in apis() {
        // Without a name, the call continues the one before, which does not exist.
        if format == ApiFormat::GeminiGenerate {
            continue;
        }
        let document = document(&[("a", "", json!({}))]);
        let server = Server::start(vec![Reply::json(&document.to_string())]).await;
        let adapter = adapter_of(&server, format.clone());
        let response = Ask::default().answer(&adapter).await;
        let (error, _) = failure(&response);
        assert_eq!(&*error.code, ErrorCode::ProviderProtocol.as_str(), "{format:?}");
    }
}

#[tokio::test]
async fn an_empty_part_of_a_summary_is_not_shown() {
    let summary =
        json!([{"type": "summary_text", "text": ""}, {"type": "summary_text", "text": "Hm."}]);
    let reasoning = json!({"type": "reasoning", "encrypted_content": "enc", "summary": summary});
    let document = json!({"object": "response", "status": "completed", "output": [reasoning]});
    let server = Server::start(vec![Reply::json(&document.to_string())]).await;
    let ask = Ask::default();
    ask.answer(&adapter_of(&server, ApiFormat::OpenAiResponses)).await;
    assert_eq!(ask.sink.lines(), ["thought Hm."]);
}
