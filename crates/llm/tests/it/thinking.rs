//! Settings for reasoning and caching, and what models do not support.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::{
    Caching, Effort, LlmAdapter as _, LlmConfig, ThinkingConfig, ThinkingDisplay,
};
use helix_agents_core::tool::ToolSet;
use helix_agents_llm::{ApiFormat, ModelServer, ServerProfile};
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, adapter_of, finish, stream, text, tool};

fn chat() -> ApiFormat {
    ApiFormat::ChatCompletions(ServerProfile::openai())
}

/// Makes a call to this model and returns the request body. The reply does not matter.
async fn sent(format: ApiFormat, model: &str, change: impl FnOnce(&mut Ask)) -> Value {
    let server = Server::start(vec![Reply::events(stream([text("Hi."), finish("stop")]))]).await;
    let adapter = adapter_of(&server, format);
    let mut ask = Ask { config: LlmConfig::new(format!("local:{model}")), ..Ask::default() };
    change(&mut ask);
    let _reply = ask.answer(&adapter).await;
    server.only_body()
}

fn set(thinking: ThinkingConfig) -> impl FnOnce(&mut Ask) {
    move |ask| ask.config.thinking = Some(thinking)
}

#[tokio::test]
async fn messages_has_efforts_budgets_and_a_display() {
    let sent = async |model, thinking| {
        let body = sent(ApiFormat::AnthropicMessages, model, set(thinking)).await;
        (body["thinking"].clone(), body["output_config"].clone())
    };
    let effort = ThinkingConfig::from(Effort::XHigh).display(ThinkingDisplay::Summarized);
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    assert_eq!(sent("claude-opus-5", effort).await, (adaptive, json!({"effort": "xhigh"})));
    let budget = json!({"type": "enabled", "budget_tokens": 2000});
    let thinking = ThinkingConfig::budget(2000);
    assert_eq!(sent("claude-sonnet-4-5", thinking).await, (budget, Value::Null));
    let off = json!({"type": "disabled"});
    assert_eq!(sent("claude-opus-5", ThinkingConfig::off()).await, (off, Value::Null));
    // This model has levels of effort, but does not decide by itself whether it reasons.
    let low = Effort::Low.into();
    assert_eq!(sent("claude-opus-4-5", low).await, (Value::Null, json!({"effort": "low"})));
}

#[tokio::test]
async fn openai_has_efforts_only() {
    let high = ThinkingConfig::from(Effort::High).display(ThinkingDisplay::Summarized);
    let body = sent(ApiFormat::OpenAiResponses, "gpt-5", set(high)).await;
    assert_eq!(body["reasoning"], json!({"effort": "high", "summary": "auto"}));
    let body = sent(ApiFormat::OpenAiResponses, "gpt-5.1", set(ThinkingConfig::off())).await;
    assert_eq!(body["reasoning"], json!({"effort": "none"}));
    assert_eq!(sent(chat(), "gpt-5", set(high)).await["reasoning_effort"], "high");
}

#[tokio::test]
async fn gemini_has_budgets_or_levels() {
    let sent = async |model, thinking| {
        let body = sent(ApiFormat::GeminiGenerate, model, set(thinking)).await;
        body["generationConfig"]["thinkingConfig"].clone()
    };
    let shown = ThinkingConfig::budget(512).display(ThinkingDisplay::Summarized);
    let budget = json!({"thinkingBudget": 512, "includeThoughts": true});
    assert_eq!(sent("gemini-2.5-pro", shown).await, budget);
    let off = ThinkingConfig::off();
    assert_eq!(sent("gemini-2.5-flash", off).await, json!({"thinkingBudget": 0}));
    let low = Effort::Low.into();
    assert_eq!(sent("gemini-3-pro", low).await, json!({"thinkingLevel": "low"}));
}

#[tokio::test]
async fn what_a_model_or_an_api_lacks_is_rejected_before_the_call() {
    let problem = |format: ApiFormat, model: &str, thinking: ThinkingConfig| {
        let options = helix_agents_llm::ModelServerOptions::new("local", "http://127.0.0.1:9");
        let adapter = ModelServer::new(options.with_format(format)).unwrap();
        let mut config = LlmConfig::new(format!("local:{model}"));
        config.thinking = Some(thinking);
        let error = adapter.check(&config).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        error.message().to_owned()
    };
    assert_eq!(
        problem(ApiFormat::AnthropicMessages, "claude-fable-5", ThinkingConfig::off()),
        "the model `claude-fable-5` cannot turn its reasoning off"
    );
    for format in [chat(), ApiFormat::OpenAiResponses] {
        assert_eq!(
            problem(format, "unknown", ThinkingConfig::budget(1)),
            "the provider `local` does not support `thinking.budget`"
        );
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_forced_to_call_a_tool_is_free_to_choose() {
    let force = |ask: &mut Ask| {
        ask.tools = Arc::new(ToolSet::new(vec![tool("add", json!({"type": "object"}), false)]));
        ask.force = Some("add");
    };
    let body = sent(ApiFormat::AnthropicMessages, "claude-opus-5-5", force).await;
    assert_eq!(body.get("tool_choice"), None);
    let body = sent(ApiFormat::AnthropicMessages, "claude-opus-5", force).await;
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "add"}));
}

#[tokio::test]
async fn caching_can_be_longer_or_off() {
    let caching = |caching| move |ask: &mut Ask| ask.config.caching = caching;
    let messages = ApiFormat::AnthropicMessages;
    let body = sent(messages.clone(), "claude-opus-5", caching(Caching::OneHour)).await;
    let breakpoint = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(body["system"][0]["cache_control"], breakpoint);
    let body = sent(messages, "claude-opus-5", caching(Caching::Off)).await;
    assert!(!body.to_string().contains("cache_control"), "{body}");
    let body = sent(ApiFormat::OpenAiResponses, "gpt-5", caching(Caching::Auto)).await;
    assert_eq!(body["prompt_cache_key"], "ses_1");
    let body = sent(ApiFormat::OpenAiResponses, "gpt-5", caching(Caching::Off)).await;
    assert_eq!(body.get("prompt_cache_key"), None);
}

#[tokio::test]
async fn messages_constrains_tools_and_outputs_of_models_that_support_it() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let narrowed = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "required": [], "additionalProperties": false});
    let strict = |ask: &mut Ask| {
        ask.tools = Arc::new(ToolSet::new(vec![tool("add", schema.clone(), true)]));
        ask.output_schema = Some(schema.clone());
        ask.config.thinking = Some(Effort::Low.into());
    };
    let body = sent(ApiFormat::AnthropicMessages, "claude-opus-5", strict).await;
    assert_eq!(body["tools"][0]["input_schema"], narrowed);
    assert_eq!(body["tools"][0]["strict"], true);
    let format = json!({"type": "json_schema", "schema": narrowed});
    assert_eq!(body["output_config"], json!({"effort": "low", "format": format}));
    let body = sent(ApiFormat::AnthropicMessages, "unknown", strict).await;
    assert_eq!(body["tools"][0].get("strict"), None);
    assert_eq!(body["tools"][0]["input_schema"], schema);
}

#[tokio::test]
async fn a_recursive_output_is_rejected_before_the_call() {
    let options = helix_agents_llm::ModelServerOptions::new("local", "http://127.0.0.1:9");
    let adapter = ModelServer::new(options.with_format(ApiFormat::AnthropicMessages)).unwrap();
    let list = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let ask = Ask { output_schema: Some(list), ..Ask::default() };
    let error = ask.of(&adapter).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert!(error.message().contains("recursive"), "{error}");
}
