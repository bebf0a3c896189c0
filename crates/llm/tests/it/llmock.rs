//! Tests against an independent imitation of OpenAI that injects faults and evaluates the client's
//! behaviour, and against the official SDK's types, which validate request bodies.

mod process;

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::id::CallId;
use helix_agents_core::llm::{LlmConfig, RetryPolicy};
use helix_agents_core::message::{
    Arguments, AssistantMessage, Message, ToolCall, ToolResultMessage, UserMessage,
};
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_core::tool::ToolSet;
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions, ServerProfile, Timeouts};
use serde_json::{Value, json};

use self::process::Llmock;
use crate::support::{Ask, content, failure, tool};

/// An API of the mock.
struct Api {
    format: ApiFormat,
    /// The path of the API on the mock.
    path: &'static str,
    /// The number of chunks before the first output.
    silent_chunks: u32,
}

impl Api {
    fn chat() -> Self {
        let format = ApiFormat::ChatCompletions(ServerProfile::openai());
        Self { format, path: "/v1", silent_chunks: 1 }
    }

    fn adapter(self, mock: &Llmock) -> ModelServer {
        // The mock's evaluation ignores waits under 50 ms, and the mock needs a moment to notice
        // that a client has disconnected.
        let policy = RetryPolicy::default().base(Duration::from_millis(400));
        let options = ModelServerOptions::new("local", &format!("{}{}", mock.url, self.path))
            .with_api_key("mock")
            .with_format(self.format)
            .with_timeouts(
                Timeouts::default()
                    .with_first_byte(Duration::from_secs(3))
                    .with_read(Duration::from_secs(3)),
            )
            .with_retry(policy);
        ModelServer::new(options).unwrap()
    }
}

/// Returns a question with a unique text, because the evaluation takes equal bodies for retries.
fn question(words: &str) -> Ask {
    Ask {
        messages: vec![Message::User(UserMessage::new(words)).into()],
        config: LlmConfig::new("local:gpt-4o"),
        max_retries: 3,
        ..Ask::default()
    }
}

fn weather() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    })
}

#[tokio::test]
async fn faults_of_chat_completions_are_handled_as_the_mock_expects() {
    check_faults(Api::chat()).await;
}

#[tokio::test]
async fn faults_of_responses_are_handled_as_the_mock_expects() {
    check_faults(Api { format: ApiFormat::OpenAiResponses, path: "/v1", silent_chunks: 4 }).await;
}

#[tokio::test]
async fn faults_of_messages_are_handled_as_the_mock_expects() {
    let format = ApiFormat::AnthropicMessages;
    check_faults(Api { format, path: "/anthropic", silent_chunks: 3 }).await;
}

#[tokio::test]
async fn faults_of_gemini_are_handled_as_the_mock_expects() {
    let format = ApiFormat::GeminiGenerate;
    check_faults(Api { format, path: "/gemini/v1beta", silent_chunks: 0 }).await;
}

/// Injects each kind of fault, and checks the result and the mock's evaluation.
async fn check_faults(api: Api) {
    let mock = Llmock::start().await;
    let silent = api.silent_chunks;
    let adapter = api.adapter(&mock);

    // Before anything is delivered, the adapter itself retries.
    let faults = [
        json!({"type": "fail", "status": 429, "retry_after": 0.4}),
        // Of three waits with jitter, the evaluation nearly always recognises that they grow; of
        // two, it does not.
        json!({"type": "fail", "status": 500, "times": 3}),
        json!({"type": "fail", "status": 503, "retry_after": 0.3}),
        json!({"type": "fail", "status": 529}),
        json!({"type": "stream_fault", "kind": "disconnect", "after_chunks": silent}),
        json!({"type": "stream_fault", "kind": "truncate", "after_chunks": silent}),
        json!({"type": "stream_fault", "kind": "malformed", "after_chunks": silent}),
        json!({"type": "stream_fault", "kind": "stall", "after_chunks": silent, "stall_seconds": 10}),
    ];
    let mut injected = 0;
    for fault in &faults {
        mock.script(std::slice::from_ref(fault)).await;
        let response = question(&format!("survive {fault}")).answer(&adapter).await;
        assert_eq!(content(&response), "Mock response from gpt-4o.", "{fault}");
        let times = fault["times"].as_u64().unwrap_or(1);
        assert_eq!(response.failed_attempts.len() as u64, times, "{fault}");
        injected += times;
    }

    // After delivery, the caller has to retry.
    for kind in ["disconnect", "truncate", "malformed", "stall"] {
        let fault = json!({"type": "stream_fault", "kind": kind, "after_chunks": silent + 2, "stall_seconds": 10});
        mock.script(&[fault]).await;
        injected += 1;
        let ask = question(&format!("deliver, then {kind}"));
        let broken = ask.answer(&adapter).await;
        assert!(!failure(&broken).1, "{kind}");
        assert!(ask.sink.lines()[0].starts_with("text Mock"), "{kind}");
        // The mock responds once it has noticed that the client has disconnected.
        mock.bodies().await;
        assert_eq!(content(&ask.answer(&adapter).await), "Mock response from gpt-4o.");
    }

    // Permanent failures are not retried.
    for status in [400, 401, 403, 404, 422] {
        mock.script(&[json!({"type": "fail", "status": status})]).await;
        injected += 1;
        let response = question(&format!("refuse with {status}")).answer(&adapter).await;
        assert!(failure(&response).1, "{status}");
    }

    let verdict = mock.verdict().await;
    assert_eq!(verdict["passed"], true, "{verdict:#}");
    assert_eq!(verdict["findings"], json!([]), "{verdict:#}");
    assert_eq!(verdict["faults_injected"], injected, "{verdict:#}");
}

#[tokio::test]
async fn a_conversation_with_tools_and_outputs_fits_the_official_types() {
    let mock = Llmock::start().await;
    let adapter = Api::chat().adapter(&mock);
    let mut ask = question("How is the weather?");
    ask.tools = Arc::new(ToolSet::new(vec![tool("get_weather", weather(), true)]));
    ask.config.max_output_tokens = Some(100);
    ask.config.temperature = Some(0.0);
    ask.config.stop_sequences = vec!["END".to_owned()];

    let response = ask.answer(&adapter).await;
    let StepResult::ToolCalls { tool_calls, stop_reason, .. } = response.result else {
        panic!("no calls: {response:?}");
    };
    assert_eq!(stop_reason, Some(StopReason::ToolUse));
    assert_eq!(&*tool_calls[0].name, "get_weather");
    let arguments = tool_calls[0].arguments.as_json().unwrap().to_value();
    assert!(arguments["city"].is_string() && arguments["days"].is_i64(), "{arguments}");
    assert!(response.usage.output_tokens > 0);

    let wire_id: Arc<str> = tool_calls[0].id.as_str().into();
    let call = ToolCall {
        id: CallId::new(1, 0),
        provider_id: Some(Arc::clone(&wire_id)),
        name: "get_weather".into(),
        arguments: tool_calls[0].arguments.clone(),
    };
    let message = AssistantMessage { tool_calls: vec![call], ..AssistantMessage::default() };
    ask.messages.push(Message::Assistant(message.into()).into());
    let result = ToolResultMessage {
        tool_call_id: CallId::new(1, 0),
        provider_id: Some(wire_id),
        tool_name: "get_weather".into(),
        content: "{\"sky\":\"blue\"}".to_owned(),
        attachments: Vec::new(),
        failed: false,
    };
    ask.messages.push(Message::Tool(result).into());
    ask.force = Some("get_weather");
    ask.answer(&adapter).await;

    let mut ask = question("As JSON, please.");
    ask.output_schema = Some(weather());
    let response = ask.answer(&adapter).await;
    assert!(matches!(response.result, StepResult::StructuredOutput { .. }), "{response:?}");

    let bodies = mock.bodies().await;
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[0]["tools"][0]["function"]["strict"], true);
    mock.check_bodies(&bodies);
}

#[tokio::test]
async fn broken_calls_are_passed_on_unchanged() {
    let mock = Llmock::start().await;
    let adapter = Api::chat().adapter(&mock);
    for fault in ["malformed_arguments", "unknown_tool"] {
        mock.script(&[json!({"type": "tool_fault", "kind": fault})]).await;
        let mut ask = question(fault);
        ask.tools = Arc::new(ToolSet::new(vec![tool("get_weather", weather(), false)]));
        let response = ask.answer(&adapter).await;
        let StepResult::ToolCalls { tool_calls, .. } = &response.result else {
            panic!("no calls: {response:?}");
        };
        let is_malformed = matches!(tool_calls[0].arguments, Arguments::Malformed(_));
        let is_known = *tool_calls[0].name == *"get_weather";
        assert_eq!(
            (is_malformed, is_known),
            (fault == "malformed_arguments", fault != "unknown_tool")
        );
    }
}

#[tokio::test]
async fn replies_without_streaming_are_the_same() {
    let mock = Llmock::start().await;
    let mut profile = ServerProfile::openai();
    profile.stream = false;
    let options = ModelServerOptions::new("local", &format!("{}/v1", mock.url));
    let plain = ModelServer::new(options.with_profile(profile)).unwrap();
    let mut ask = question("The same?");
    let streamed = ask.answer(&Api::chat().adapter(&mock)).await;
    let whole = ask.answer(&plain).await;
    assert_eq!(streamed.result, whole.result);

    ask.tools = Arc::new(ToolSet::new(vec![tool("get_weather", weather(), false)]));
    let streamed = ask.answer(&Api::chat().adapter(&mock)).await;
    let whole = ask.answer(&plain).await;
    assert_eq!(streamed.result.stop_reason(), whole.result.stop_reason());
}
