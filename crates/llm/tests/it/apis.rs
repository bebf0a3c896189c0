//! The requests of each API, and replies that are sent back from the transcript.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::ModelReply;
use helix_agents_core::llm::{LlmAdapter as _, LlmConfig, LlmResponse, ThinkingConfig};
use helix_agents_core::message::{AssistantMessage, Message};
use helix_agents_core::step::StopReason;
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions, ServerProfile};
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, Talk, adapter_of, options};

/// Makes a call that is answered with these events, then sends the reply back with a result, and returns the response
/// and both requests.
async fn round_trip(format: ApiFormat, events: &[Value]) -> (LlmResponse, Value, Value) {
    let stream: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let replies = vec![Reply::events(&stream), Reply::events(&stream)];
    let server = Server::start(replies).await;
    let adapter = adapter_of(&server, format);
    let mut talk = Talk::with("m1");
    talk.ask.force = Some("lookup");
    let response = talk.step(&adapter).await;
    talk.ask.force = None;
    talk.say("Go on.");
    talk.step(&adapter).await;
    let requests = server.requests();
    (response, requests[0].json(), requests[1].json())
}

#[tokio::test]
async fn messages_sends_signed_reasoning_back_unchanged() {
    let events = [
        json!({"type": "message_start", "message": {"model": "m1-2", "usage": {"input_tokens": 7}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"key\":1}"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let (response, first, second) = round_trip(ApiFormat::AnthropicMessages, &events).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (7, 5));
    let breakpoint = json!({"type": "ephemeral"});
    let prompt = json!({"type": "text", "text": "Be brief.", "cache_control": breakpoint});
    assert_eq!(first["system"], json!([prompt]));
    assert_eq!(first["tools"][0]["cache_control"], breakpoint);
    assert_eq!(first["tool_choice"], json!({"type": "tool", "name": "lookup"}));
    assert_eq!(second.get("tool_choice"), None);
    let content = &second["messages"][1];
    assert_eq!(content["role"], "assistant");
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "sig"});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {"key": 1}});
    assert_eq!(content["content"], json!([thinking, call]));
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"});
    let user = json!({"type": "text", "text": "Go on.", "cache_control": breakpoint});
    assert_eq!(second["messages"][2], json!({"role": "user", "content": [result, user]}));
}

#[tokio::test]
async fn responses_sends_encrypted_reasoning_back_unchanged() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "enc",
        "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup",
        "arguments": "{\"key\":1}", "status": "completed"});
    let events = [
        json!({"type": "response.created", "response": {"model": "m1-2"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "name": "lookup"}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"key\":1}"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": call}),
        json!({"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 7, "output_tokens": 5}}}),
    ];
    let (response, first, second) = round_trip(ApiFormat::OpenAiResponses, &events).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
    assert_eq!(
        (first["instructions"].as_str(), &first["store"]),
        (Some("Be brief."), &json!(false))
    );
    assert_eq!(first["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(first["tools"][0]["strict"], false);
    assert_eq!(second["input"][1], reasoning);
    let sent = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup",
        "arguments": "{\"key\":1}"});
    assert_eq!(second["input"][2], sent);
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "found"});
    assert_eq!(second["input"][3], result);
}

#[tokio::test]
async fn gemini_sends_signatures_back_at_their_place() {
    let parts = json!([
        {"functionCall": {"id": "a", "name": "lookup", "args": {"key": 1}}, "thoughtSignature": "sig"},
    ]);
    let events = [
        json!({"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}]}}]}),
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}}),
    ];
    let (response, first, second) = round_trip(ApiFormat::GeminiGenerate, &events).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (7, 5));
    assert_eq!(first["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    let forced = json!({"mode": "ANY", "allowedFunctionNames": ["lookup"]});
    assert_eq!(first["toolConfig"]["functionCallingConfig"], forced);
    let model = &second["contents"][1];
    assert_eq!((&model["role"], &model["parts"][1]), (&json!("model"), &parts[0]));
    let result =
        json!({"functionResponse": {"id": "a", "name": "lookup", "response": {"output": "found"}}});
    let user = json!({"role": "user", "parts": [result, {"text": "Go on."}]});
    assert_eq!(second["contents"][2], user);
}

#[tokio::test]
async fn the_key_is_sent_in_the_header_of_the_api() {
    for (format, header, value) in [
        (ApiFormat::AnthropicMessages, "authorization", "Bearer secret"),
        (ApiFormat::OpenAiResponses, "authorization", "Bearer secret"),
        (ApiFormat::GeminiGenerate, "x-goog-api-key", "secret"),
    ] {
        let server = Server::start(vec![Reply::status(401, "", "{}")]).await;
        let options = options(&server).with_format(format).with_api_key("secret");
        Ask::default().answer(&ModelServer::new(options).unwrap()).await;
        let request = &server.requests()[0];
        assert_eq!(request.header(header).as_deref(), Some(value));
        assert!(!request.head.lines().next().unwrap().contains("secret"), "{}", request.head);
    }
}

/// Returns the input items of a Responses request of a provider for a transcript with this stored reply.
async fn input_items(name: &str, message: AssistantMessage) -> Vec<Value> {
    let server = Server::start(vec![Reply::status(400, "", "{}")]).await;
    let mut options = ModelServerOptions::new(name, &server.url());
    options.format = ApiFormat::OpenAiResponses;
    let adapter = ModelServer::new(options).unwrap();
    let mut ask = Ask { config: LlmConfig::new(format!("{name}:m1")), ..Ask::default() };
    ask.messages.push(Message::Assistant(Arc::new(message)).into());
    ask.answer(&adapter).await;
    let input = server.requests()[0].json()["input"].clone();
    input.as_array().unwrap()[1..].to_vec()
}

/// Returns a reply of Responses with these items, as the transcript contains it.
async fn responses_reply(items: &[Value]) -> AssistantMessage {
    let mut events = vec![json!({"type": "response.created", "response": {"model": "m1-2"}})];
    events.extend(items.iter().zip(0..).map(|(item, index)| {
        json!({"type": "response.output_item.done", "output_index": index, "item": item})
    }));
    events.push(
        json!({"type": "response.completed", "response": {"status": "completed", "usage": {}}}),
    );
    let stream: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let server = Server::start(vec![Reply::events(&stream)]).await;
    let response = Ask::default().answer(&adapter_of(&server, ApiFormat::OpenAiResponses)).await;
    let reply = ModelReply::from_response(1, response, 0);
    AssistantMessage::clone(reply.message.as_ref().unwrap())
}

fn reasoning(id: &str, summary: &[&str]) -> Value {
    let summary = summary.iter().map(|text| json!({"type": "summary_text", "text": text}));
    json!({"type": "reasoning", "id": id, "encrypted_content": "enc", "summary": summary.collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_summary_with_many_parts_is_sent_back_unchanged() {
    let text = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}]});
    let first = reasoning("rs_1", &["One.", "Two.", "Three."]);
    let reply = responses_reply(&[first.clone(), reasoning("rs_2", &[]), text]).await;
    let sent = input_items("local", reply).await;
    assert_eq!((&sent[0], &sent[1]), (&first, &reasoning("rs_2", &[])));
    assert_eq!(sent[2]["content"][0]["text"], "Done.");
}

#[tokio::test]
async fn encrypted_reasoning_is_sent_to_its_own_provider_only() {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup",
        "arguments": "{}", "status": "completed"});
    let reply = responses_reply(&[reasoning("rs_1", &["One."]), call]).await;
    assert_eq!(input_items("local", reply.clone()).await[0]["type"], "reasoning");
    let of_another = input_items("azure", reply).await;
    assert_eq!(of_another.len(), 1);
    assert_eq!((&of_another[0]["type"], of_another[0].get("id")), (&json!("function_call"), None));
}

#[tokio::test]
async fn reasoning_that_nothing_follows_is_not_sent_back() {
    let text = json!({"type": "message", "id": "msg_1", "role": "assistant",
        "content": [{"type": "output_text", "text": "Part", "annotations": []}]});
    let reply = responses_reply(&[text, reasoning("rs_1", &["One."])]).await;
    let sent = input_items("local", reply).await;
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["type"], "message");
}

#[tokio::test]
async fn settings_that_exclude_each_other_are_rejected_before_the_call() {
    let server = Server::start(Vec::new()).await;
    let check = |format: ApiFormat, change: &dyn Fn(&mut LlmConfig), word: &str| {
        let adapter = adapter_of(&server, format);
        let mut config = LlmConfig::new("local:m1");
        adapter.check(&config).unwrap();
        change(&mut config);
        let error = adapter.check(&config).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        assert!(error.message().contains(word), "{error}");
    };
    let budget = |config: &mut LlmConfig| {
        config.max_output_tokens = Some(4000);
        config.thinking = Some(ThinkingConfig::budget(4000));
    };
    check(ApiFormat::AnthropicMessages, &budget, "max_output_tokens");
    let text = |config: &mut LlmConfig| {
        config.native_output = true;
        let options = [("text".to_owned(), json!({"verbosity": "low"}))].into_iter().collect();
        config.provider_options.insert("openai".to_owned(), options);
    };
    check(ApiFormat::OpenAiResponses, &text, "`text`");
}

#[tokio::test]
async fn chat_completions_sends_signed_reasoning_back_unchanged() {
    let delta =
        |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let detail = |detail: Value| delta(json!({"reasoning_details": [detail]}));
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}});
    let chunks = [
        delta(json!({"reasoning": "Hm", "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "format": "f1", "text": "Hm"}]})),
        delta(json!({"reasoning": ".", "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "format": "f1", "text": "."}]})),
        detail(json!({"type": "reasoning.text", "index": 0, "signature": "sig", "id": null})),
        detail(json!({"type": "reasoning.encrypted", "index": 1, "data": "enc"})),
        delta(json!({"tool_calls": [call]})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let format = ApiFormat::ChatCompletions(ServerProfile::compatible());
    let (response, _, second) = round_trip(format, &chunks).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
    let text = json!({"type": "reasoning.text", "index": 0, "format": "f1", "text": "Hm.", "signature": "sig"});
    let encrypted = json!({"type": "reasoning.encrypted", "index": 1, "data": "enc"});
    assert_eq!(second["messages"][2]["reasoning_details"], json!([text, encrypted]));
}

#[tokio::test]
async fn details_with_a_text_of_their_own_are_kept_whole() {
    let detail = json!({"type": "reasoning.summary", "index": 0, "summary": "Short."});
    let call = json!({"index": 0, "id": "c1", "function": {"name": "lookup", "arguments": "{}"}});
    let delta = json!({"reasoning": "Long.", "reasoning_details": [detail], "tool_calls": [call]});
    let chunks =
        [json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]})];
    let format = ApiFormat::ChatCompletions(ServerProfile::compatible());
    let (response, _, second) = round_trip(format, &chunks).await;
    let message = ModelReply::from_response(1, response, 0).message.unwrap();
    assert_eq!(message.thinking.as_ref().unwrap().content, "Long.");
    assert_eq!(second["messages"][2]["reasoning_details"], json!([detail]));
}

#[tokio::test]
async fn a_call_with_text_as_its_input_has_one_argument() {
    let call = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "write_sql",
        "input": "SELECT 1"});
    let reply = responses_reply(&[call]).await;
    assert_eq!(
        reply.tool_calls[0].arguments.as_json().unwrap().to_value(),
        json!({"input": "SELECT 1"})
    );
    let sent = input_items("local", reply).await;
    let function = json!({"type": "function_call", "call_id": "call_1", "name": "write_sql",
        "arguments": "{\"input\":\"SELECT 1\"}"});
    assert_eq!(sent[0], function);
}
