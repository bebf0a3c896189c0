//! Requirements of single models and servers that the shared formats have to meet.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::ModelReply;
use helix_agents_core::id::CallId;
use helix_agents_core::message::{
    Arguments, AssistantMessage, Message, SharedMessage, Thinking, ToolCall, UserMessage,
};
use helix_agents_core::step::StopReason;
use helix_agents_core::tool::{ToolSet, ToolSpec};
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions, ServerProfile};
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Request, Server, adapter_of, failure, found, options, play};

/// Makes a call and returns its request.
async fn sent(format: ApiFormat, model: &str, mut ask: Ask) -> Request {
    let server = Server::start(vec![Reply::status(400, "", "{}")]).await;
    let adapter = adapter_of(&server, format);
    ask.config.model = format!("local:{model}");
    ask.answer(&adapter).await;
    server.requests().remove(0)
}

fn with_tool(ask: Ask) -> Ask {
    let spec = ToolSpec::new("lookup", "Looks up a key.", json!({"type": "object"}));
    Ask { tools: Arc::new(ToolSet::new(vec![spec])), ..ask }
}

/// Returns a conversation with a reply of another provider: two calls with foreign ids, and their results.
fn foreign_calls(text: Option<&str>) -> Vec<SharedMessage> {
    let call = |id: &str| ToolCall {
        id: CallId::from(id),
        provider_id: Some(format!("functions.f:{id}").into()),
        name: "lookup".into(),
        arguments: Arguments::parse("{}"),
    };
    let calls = vec![call("1.0"), call("1.1")];
    let results: Vec<SharedMessage> = calls.iter().map(found).collect();
    let reply = AssistantMessage {
        content: text.map(str::to_owned),
        thinking: Some(Thinking::new("Hm.")),
        tool_calls: calls,
        ..AssistantMessage::default()
    };
    let question: SharedMessage = Message::User(UserMessage::new("Hello?")).into();
    let reply: SharedMessage = Message::Assistant(Arc::new(reply)).into();
    [question, reply].into_iter().chain(results).collect()
}

#[tokio::test]
async fn ids_of_calls_fit_the_api_and_match_their_results() {
    for (format, call, result) in [
        (ApiFormat::AnthropicMessages, "id", "tool_use_id"),
        (ApiFormat::BedrockConverse, "toolUseId", "toolUseId"),
    ] {
        let ask = with_tool(Ask { messages: foreign_calls(None), ..Ask::default() });
        let body = sent(format, "m", ask).await.json();
        let block = |message: usize, block: usize| {
            let block = &body["messages"][message]["content"][block];
            let inner = block.get("toolUse").or_else(|| block.get("toolResult"));
            inner.unwrap_or(block).clone()
        };
        for at in 0..2 {
            let id = block(1, at)[call].clone();
            let text = id.as_str().unwrap();
            let fits =
                |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
            assert!(text.len() <= 64 && text.chars().all(fits), "{text}");
            assert_eq!(block(2, at)[result], id);
        }
        assert_ne!(block(1, 0)[call], block(1, 1)[call]);
    }
}

#[tokio::test]
async fn text_of_white_space_is_not_sent_to_anthropic() {
    let ask = with_tool(Ask { messages: foreign_calls(Some("\n\n")), ..Ask::default() });
    let body = sent(ApiFormat::AnthropicMessages, "m", ask).await.json();
    assert_eq!(body["messages"][1]["content"][0]["type"], "tool_use");
}

#[tokio::test]
async fn calls_of_another_model_are_marked_for_models_that_require_signatures() {
    for (model, expected) in
        [("gemini-3-pro", Some("skip_thought_signature_validator")), ("gemini-2.5-flash", None)]
    {
        let ask = with_tool(Ask { messages: foreign_calls(None), ..Ask::default() });
        let body = sent(ApiFormat::GeminiGenerate, model, ask).await.json();
        let parts = &body["contents"][1]["parts"];
        assert_eq!(parts[0].get("thoughtSignature").and_then(Value::as_str), expected, "{model}");
        assert_eq!(parts[1].get("thoughtSignature"), None, "{model}");
    }
}

#[tokio::test]
async fn deepseek_gets_the_reasoning_of_earlier_replies() {
    let ask = || with_tool(Ask { messages: foreign_calls(None), ..Ask::default() });
    let mut profile = ServerProfile::compatible();
    let known = ModelServerOptions::new("d", "https://api.deepseek.com/v1").format;
    assert!(known.profile().unwrap().reasoning_content);
    let body = sent(ApiFormat::ChatCompletions(profile.clone()), "m", ask()).await.json();
    assert_eq!(body["messages"][2].get("reasoning_content"), None);
    profile.reasoning_content = true;
    let body = sent(ApiFormat::ChatCompletions(profile), "m", ask()).await.json();
    assert_eq!(body["messages"][2]["reasoning_content"], "Hm.");
}

#[tokio::test]
async fn responses_omits_what_a_model_rejects() {
    let body = sent(ApiFormat::OpenAiResponses, "gpt-4.1", Ask::default()).await.json();
    assert_eq!(body.get("include"), None, "the model does not reason");
    for model in ["gpt-5", "unknown"] {
        let body = sent(ApiFormat::OpenAiResponses, model, Ask::default()).await.json();
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]), "{model}");
        assert_eq!(body["prompt_cache_key"], "ses_1");
    }
}

#[tokio::test]
async fn cache_points_of_converse_depend_on_the_model() {
    for (model, tools, prompt) in [
        ("us.anthropic.claude-sonnet-4-5", true, true),
        ("amazon.nova-pro", false, true),
        ("openai.gpt-oss", false, false),
    ] {
        let body = sent(ApiFormat::BedrockConverse, model, with_tool(Ask::default())).await.json();
        let has_point = |list: &Value| {
            list.as_array().unwrap().iter().any(|block| block.get("cachePoint").is_some())
        };
        assert_eq!(has_point(&body["toolConfig"]["tools"]), tools, "{model}");
        assert_eq!(has_point(&body["system"]), prompt, "{model}");
    }
}

#[tokio::test]
async fn a_refused_key_is_recognised_in_every_form() {
    for (status, body) in [
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***"}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid API key."}}"#,
        ),
        (401, r#"{"error":{"message":"No."}}"#),
    ] {
        let server = Server::start(vec![Reply::status(status, "", body)]).await;
        let adapter = ModelServer::new(options(&server)).unwrap();
        let response = Ask::default().answer(&adapter).await;
        let (error, _) = failure(&response);
        assert_eq!(&*error.code, ErrorCode::ProviderUnauthorized.as_str(), "{body}");
        assert_eq!(error.detail, None, "the message may contain a part of the key");
    }
}

#[tokio::test]
async fn a_forbidden_request_says_why() {
    let body = r#"{"message":"Your account is not authorized to invoke this API operation."}"#;
    let server = Server::start(vec![Reply::status(403, "", body)]).await;
    let adapter = ModelServer::new(options(&server)).unwrap();
    let response = Ask::default().answer(&adapter).await;
    let (error, _) = failure(&response);
    assert_eq!(&*error.code, ErrorCode::ProviderUnauthorized.as_str());
    assert!(error.detail.as_ref().unwrap().contains("this API operation"), "{error:?}");
}

#[tokio::test]
async fn a_refusal_with_calls_is_a_refusal() {
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"refusal": "No."}}]}).to_string(),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}}]}).to_string(),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string(),
    ];
    let (response, _) = play(&chunks).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::Refusal));
}

#[tokio::test]
async fn details_with_the_same_index_stay_apart() {
    let detail = |detail: Value| {
        json!({"choices": [{"index": 0, "delta": {"reasoning_details": [detail]}}]}).to_string()
    };
    let chunks = [
        detail(json!({"type": "reasoning.summary", "index": 0, "summary": "A"})),
        detail(json!({"type": "reasoning.encrypted", "index": 0, "id": "r1", "data": "one"})),
        detail(json!({"type": "reasoning.encrypted", "index": 0, "id": "r2", "data": "two"})),
        detail(json!({"type": "reasoning.encrypted", "data": "three"})),
        detail(json!({"type": "reasoning.encrypted", "data": "four"})),
        json!({"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]})
            .to_string(),
    ];
    let (response, _) = play(&chunks).await;
    let message = ModelReply::from_response(1, response, 0).message.unwrap();
    let mut ask = Ask::default();
    ask.messages.push(Message::Assistant(Arc::clone(&message)).into());
    let format = || ApiFormat::ChatCompletions(ServerProfile::compatible());
    let body = sent(format(), "m1", ask).await.json();
    let details = body["messages"][2]["reasoning_details"].as_array().unwrap().clone();
    let data: Vec<&str> = details.iter().filter_map(|detail| detail["data"].as_str()).collect();
    assert_eq!(data, ["one", "two", "three", "four"]);
    assert_eq!(details.len(), 5, "{details:?}");

    let mut ask = Ask::default();
    ask.messages.push(Message::Assistant(message).into());
    let body = sent(format(), "another", ask).await.json();
    assert_eq!(body["messages"][2].get("reasoning_details"), None, "data of another model");
}

#[tokio::test]
async fn a_deep_path_of_streamed_arguments_is_ignored() {
    let path = format!("${}", "[0]".repeat(100_000));
    let call = json!({"name": "lookup", "partialArgs": [
        {"jsonPath": path, "stringValue": "x"}, {"jsonPath": "$.key", "stringValue": "found"}]});
    let event = json!({"candidates": [{"content": {"parts": [{"functionCall": call}]}, "finishReason": "STOP"}]});
    let server = Server::start(vec![Reply::events([format!("data: {event}\n\n")])]).await;
    let response =
        with_tool(Ask::default()).answer(&adapter_of(&server, ApiFormat::GeminiGenerate)).await;
    let reply = ModelReply::from_response(1, response, 0).message.unwrap();
    assert_eq!(
        reply.tool_calls[0].arguments.as_json().unwrap().to_value(),
        json!({"key": "found"})
    );
}
