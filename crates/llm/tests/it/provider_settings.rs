//! Settings that have a form of their own at each provider: provider options, and caching.

use helix_agents_core::llm::{Caching, LlmConfig};
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions};
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server};

/// Makes a call to a provider and returns the request body. The reply does not matter.
async fn sent(provider: &str, format: ApiFormat, change: impl FnOnce(&mut LlmConfig)) -> Value {
    let server = Server::start(vec![Reply::status(400, "", "{}")]).await;
    let options = ModelServerOptions::new(provider, &server.url()).with_format(format);
    let adapter = ModelServer::new(options).unwrap();
    let mut ask = Ask { config: LlmConfig::new(format!("{provider}:m1")), ..Ask::default() };
    change(&mut ask.config);
    let _reply = ask.answer(&adapter).await;
    server.only_body()
}

#[tokio::test]
async fn options_of_each_api_are_passed_on_unchanged() {
    let table = [
        (
            "anthropic",
            ApiFormat::AnthropicMessages,
            json!({"thinking": {"type": "enabled", "budget_tokens": 10_000}}),
        ),
        (
            "openai",
            ApiFormat::OpenAiResponses,
            json!({"reasoning": {"effort": "high", "summary": "detailed"}}),
        ),
        ("gemini", ApiFormat::GeminiGenerate, json!({"labels": {"team": "red"}})),
        (
            "bedrock",
            ApiFormat::BedrockConverse,
            json!({"additionalModelRequestFields": {"top_k": 5}}),
        ),
    ];
    for (key, format, options) in table {
        // The options of an API apply to every server of it.
        for provider in [key, "local"] {
            let members = options.as_object().unwrap().clone();
            let body = sent(provider, format.clone(), |config| {
                config.provider_options.insert(key.to_owned(), members);
            });
            let body = body.await;
            for (name, value) in options.as_object().unwrap() {
                assert_eq!(body[name], *value, "{name} of {key}");
            }
        }
    }
}

#[tokio::test]
async fn gemini_caches_without_being_asked() {
    let body = async |caching| {
        sent("gemini", ApiFormat::GeminiGenerate, |config| config.caching = caching).await
    };
    let automatic = body(Caching::Auto).await;
    assert!(!automatic.to_string().to_lowercase().contains("cache"), "{automatic}");
    assert_eq!(automatic, body(Caching::Off).await);
}

#[tokio::test]
async fn xai_gets_the_session_as_the_key_of_its_cache() {
    let body = sent("xai", ApiFormat::OpenAiResponses, |_| ()).await;
    assert_eq!(body["prompt_cache_key"], "ses_1");
}
