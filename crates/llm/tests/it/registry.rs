//! The choice of the provider that serves a model.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{
    LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink, RetryPolicy,
};
use helix_agents_core::message::Arguments;
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::usage::Usage;
use helix_agents_llm::{ModelServerOptions, ModelSource, ProviderRegistry, SelectedModel};

use crate::support::{
    Ask, Reply, Server, adapter, content, failure, finish, options, stream, text,
};

fn good() -> Reply {
    Reply::events(stream([text("Hi."), finish("stop")]))
}

fn options_for(name: &str) -> ModelServerOptions {
    ModelServerOptions::new(name, "http://127.0.0.1:9/v1")
}

#[track_caller]
fn check_unknown(registry: &ProviderRegistry, model: &str, message: &str) {
    let found = match model {
        "" => registry.default_model(),
        name => registry.model(name),
    };
    let error = found.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelUnknown);
    assert_eq!(error.message(), message);
    let config = LlmConfig::new(model);
    assert_eq!(registry.check(&config).unwrap_err().code(), ErrorCode::ModelUnknown);
}

#[test]
fn the_only_provider_serves_models_without_one() {
    let registry = ProviderRegistry::new().with_provider(options_for("a")).unwrap();
    assert_eq!(registry.model("m").unwrap().to_string(), "a:m");
    assert_eq!(registry.model("a:m").unwrap().to_string(), "a:m");
    assert_eq!(registry.model("a:llama3:8b").unwrap().model, "llama3:8b");
    check_unknown(
        &registry,
        "llama3:8b",
        "no provider `llama3` is configured (configured: a); if the colon belongs to the model's \
         name, write `a:llama3:8b`",
    );
    check_unknown(&registry, "", "no model is named, and the provider `a` has no default model");
}

#[test]
fn of_several_providers_one_may_be_the_default() {
    let registry = ProviderRegistry::new()
        .with_provider(options_for("a"))
        .unwrap()
        .with_provider(options_for("b").with_default_model("big"))
        .unwrap();
    check_unknown(
        &registry,
        "m",
        "the model `m` names no provider, and there is no default one (configured: a, b)",
    );
    check_unknown(&registry, "c:m", "no provider `c` is configured (configured: a, b)");
    let registry = registry.with_default("b").unwrap();
    assert_eq!(registry.model("m").unwrap().to_string(), "b:m");
    assert_eq!(registry.default_model().unwrap().to_string(), "b:big");
    assert_eq!(registry.model("b:").unwrap().to_string(), "b:big");
    let error = registry.with_default("x").unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
}

#[test]
fn an_empty_registry_says_how_to_fill_it() {
    check_unknown(
        &ProviderRegistry::new(),
        "openai:gpt-5",
        "no provider `openai` is configured (set OPENAI_API_KEY, ANTHROPIC_API_KEY, \
         GEMINI_API_KEY or another provider's key, or describe one in helix.toml)",
    );
    check_unknown(
        &ProviderRegistry::new(),
        "",
        "no model is named, and there is no default provider (set OPENAI_API_KEY, ANTHROPIC_API_KEY, \
         GEMINI_API_KEY or another provider's key, or describe one in helix.toml)",
    );
    assert!(ProviderRegistry::new().is_empty());
    let unnamed = ProviderRegistry::new().model("").unwrap_err();
    assert_eq!(unnamed.code(), ErrorCode::ModelUnknown);
}

#[tokio::test]
async fn calls_go_to_the_provider_that_the_model_names() {
    let one = Server::start(vec![good()]).await;
    let two = Server::start(vec![good(), good()]).await;
    let mut second = options(&two);
    second.name = "second".to_owned();
    second.default_model = Some("big".to_owned());
    let registry = ProviderRegistry::new()
        .with_provider(options(&one))
        .unwrap()
        .with_provider(second)
        .unwrap()
        .with_default("second")
        .unwrap();
    for (model, server, sent) in
        [("local:m1", &one, "m1"), ("org/m:8b", &two, ""), ("", &two, "big")]
    {
        let mut ask = Ask::default();
        model.clone_into(&mut ask.config.model);
        if sent.is_empty() {
            assert!(ask.of(&registry).await.is_err(), "a colon needs a provider");
            continue;
        }
        assert_eq!(content(&ask.answer(&registry).await), "Hi.");
        assert_eq!(server.requests().last().unwrap().json()["model"], sent);
    }
    let mut ask = Ask::default();
    ask.config.model = "org/m".to_owned();
    ask.answer(&registry).await;
    assert_eq!(two.requests().last().unwrap().json()["model"], "org/m");
}

#[tokio::test]
async fn any_adapter_may_be_a_provider() {
    let server = Server::start(vec![good()]).await;
    let registry = ProviderRegistry::new().with_adapter("mine", Arc::new(adapter(&server)));
    let mut ask = Ask::default();
    ask.config.model = "mine:x".to_owned();
    assert_eq!(content(&ask.answer(&registry).await), "Hi.");
}

#[tokio::test]
async fn an_adapter_answers_if_nothing_is_configured() {
    let server = Server::start(vec![good()]).await;
    let registry = ProviderRegistry::new().or_adapter("mine", adapter(&server));
    assert_eq!(registry.default_model().unwrap().to_string(), "mine");
    assert_eq!(registry.model("mine:x").unwrap().to_string(), "mine:x");
    assert_eq!(registry.model("openai:m").unwrap_err().code(), ErrorCode::ModelUnknown);
    let mut ask = Ask::default();
    ask.config.model = String::new();
    assert!(ask.of(&registry).await.is_err(), "this adapter has no default model");
    ask.config.model = "x".to_owned();
    assert_eq!(content(&ask.answer(&registry).await), "Hi.");

    let configured = ProviderRegistry::new().with_provider(options_for("a")).unwrap();
    let configured = configured.or_adapter("mine", adapter(&server));
    assert_eq!(configured.names().collect::<Vec<_>>(), ["a"]);
    // An adapter does not answer for a model that was explicitly requested.
    let wanted = ProviderRegistry::new().with_default_model("m");
    assert!(wanted.or_adapter("mine", adapter(&server)).is_empty());
}

#[tokio::test]
async fn calls_that_name_no_model_use_the_default_model() {
    let one = Server::start(vec![good()]).await;
    let two = Server::start(vec![good()]).await;
    let mut second = options(&two);
    second.name = "second".to_owned();
    let registry = ProviderRegistry::new()
        .with_provider(options(&one))
        .unwrap()
        .with_provider(second)
        .unwrap()
        .with_default_model("second:big");
    let mut ask = Ask::default();
    for (model, server, sent) in [("", &two, "big"), ("local:m", &one, "m")] {
        model.clone_into(&mut ask.config.model);
        registry.check(&ask.config).unwrap();
        assert_eq!(content(&ask.answer(&registry).await), "Hi.");
        assert_eq!(server.requests().last().unwrap().json()["model"], sent);
    }
}

#[test]
fn debug_output_names_providers_and_hides_keys() {
    let options = options_for("a").with_api_key("hunter2");
    let registry = ProviderRegistry::new().with_provider(options).unwrap();
    let text = format!("{registry:?}");
    assert!(text.contains("\"a\""), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(registry.names().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn settings_are_checked_by_the_provider() {
    let options = ModelServerOptions::new("openai", "https://api.openai.com/v1");
    let registry = ProviderRegistry::new().with_provider(options).unwrap();
    let mut config = LlmConfig::new("openai:m");
    config.top_k = Some(3);
    assert_eq!(registry.check(&config).unwrap_err().code(), ErrorCode::ConfigInvalid);
}

#[tokio::test]
async fn a_named_model_needs_a_provider() {
    let error = SelectedModel::find("no-such-provider:small", Duration::ZERO).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelUnknown);
    assert_eq!(ModelSource::Detected(8080).to_string(), "served on port 8080 of this machine");
}

/// Makes a call to `a:m` with the fallback `b:m`, of servers with these replies.
async fn fall_back(first: Vec<Reply>, second: Vec<Reply>) -> (LlmResponse, usize) {
    let (first, second) = (Server::start(first).await, Server::start(second).await);
    let named = |name: &str, server: &Server| {
        ModelServerOptions::new(name, &server.url())
            .with_retry(RetryPolicy::default().base(Duration::from_millis(1)))
    };
    let registry = ProviderRegistry::new()
        .with_provider(named("a", &first))
        .unwrap()
        .with_provider(named("b", &second))
        .unwrap();
    let mut config = LlmConfig::new("a:m");
    config.fallback_models = vec!["b:m".to_owned()];
    registry.check(&config).unwrap();
    let response = Ask { config, max_retries: 1, ..Ask::default() }.answer(&registry).await;
    (response, second.requests().len())
}

#[tokio::test]
async fn another_model_replies_if_a_provider_is_unavailable() {
    let down = || Reply::status(503, "", "{}");
    let (response, calls) = fall_back(vec![down(), down()], vec![good()]).await;
    assert_eq!((content(&response), calls), ("Hi.", 1));
    let codes: Vec<_> = response.failed_attempts.iter().map(|failed| &*failed.code).collect();
    assert_eq!(codes, ["provider_unavailable", "provider_unavailable"]);
}

#[tokio::test]
async fn no_other_model_is_called_after_output_or_for_a_rejected_request() {
    let cut = Reply::broken([format!("data: {}\n\n", text("Hi"))]);
    let (response, calls) = fall_back(vec![cut], vec![]).await;
    assert_eq!((failure(&response).1, calls), (false, 0));
    let (response, calls) = fall_back(vec![Reply::status(400, "", "{}")], vec![]).await;
    assert_eq!((&*failure(&response).0.code, calls), ("provider_rejected", 0));
}

#[tokio::test]
async fn no_other_model_is_called_if_a_permanent_failure_follows_output() {
    for code in ["insufficient_quota", "invalid_api_key"] {
        let error = format!(r#"{{"error":{{"message":"No.","code":"{code}"}}}}"#);
        let failed = Reply::events([text("Hi"), error].map(|data| format!("data: {data}\n\n")));
        let (response, calls) = fall_back(vec![failed], vec![good()]).await;
        assert_eq!((failure(&response).1, calls), (true, 0), "{code}");
    }
}

#[tokio::test]
async fn no_other_model_is_called_after_output_of_a_custom_adapter() {
    for output in [Output::Text, Output::Thinking, Output::Start, Output::Arguments, Output::Call] {
        let second = Server::start(vec![good()]).await;
        let registry = ProviderRegistry::new()
            .with_adapter("a", Arc::new(Cut(output)))
            .with_provider(ModelServerOptions::new("b", &second.url()))
            .unwrap();
        let mut ask = Ask::default();
        ask.config.model = "a:m".to_owned();
        ask.config.fallback_models = vec!["b:m".to_owned()];
        assert!(failure(&ask.answer(&registry).await).1, "{output:?}");
        assert_eq!((second.requests().len(), ask.sink.lines().len()), (0, 1), "{output:?}");
    }
}

#[test]
fn a_fallback_of_an_unknown_provider_is_rejected_before_the_run() {
    let registry = ProviderRegistry::new().with_provider(options_for("a")).unwrap();
    let mut config = LlmConfig::new("a:m");
    config.fallback_models = vec!["b:m".to_owned()];
    assert_eq!(registry.check(&config).unwrap_err().code(), ErrorCode::ModelUnknown);
}

#[tokio::test]
async fn a_fallback_gets_no_key_of_another_provider() {
    let (first, second) = (
        Server::start(vec![Reply::status(503, "", "{}")]).await,
        Server::start(vec![good()]).await,
    );
    let registry = ProviderRegistry::new()
        .with_provider(ModelServerOptions::new("first", &first.url()).with_api_key("one"))
        .unwrap()
        .with_provider(ModelServerOptions::new("second", &second.url()).with_api_key("two"))
        .unwrap();
    let mut ask = Ask::default();
    ask.config.model = "first:m".to_owned();
    ask.config.fallback_models = vec!["second:m".to_owned()];
    ask.config.headers.insert("Authorization".to_owned(), "Bearer of the first".to_owned());
    ask.config.headers.insert("Helicone-Auth".to_owned(), "Bearer of a gateway".to_owned());
    ask.config.headers.insert("x-team".to_owned(), "blue".to_owned());
    ask.answer(&registry).await;
    assert!(second.requests()[0].header("helicone-auth").is_none());
    let header = |server: &Server, name: &str| server.requests()[0].header(name).unwrap();
    assert_eq!(header(&first, "authorization"), "Bearer of the first");
    assert_eq!(header(&second, "authorization"), "Bearer two");
    assert_eq!(header(&second, "x-team"), "blue");
}

#[tokio::test]
async fn a_fallback_of_the_same_provider_keeps_the_headers_with_keys() {
    for model in ["work:large", "large"] {
        let server = Server::start(vec![Reply::status(402, "", "{}"), good()]).await;
        let options = ModelServerOptions::new("work", &server.url());
        let registry = ProviderRegistry::new().with_provider(options).unwrap();
        let mut ask = Ask::default();
        ask.config.model = model.to_owned();
        ask.config.fallback_models = vec!["work:small".to_owned()];
        ask.config.headers.insert("Authorization".to_owned(), "Bearer of work".to_owned());
        assert_eq!(content(&ask.answer(&registry).await), "Hi.");
        let sent: Vec<_> =
            server.requests().iter().map(|sent| sent.header("authorization")).collect();
        assert_eq!(sent, [Some("Bearer of work".to_owned()), Some("Bearer of work".to_owned())]);
    }
}

#[tokio::test]
async fn a_fallback_that_cannot_be_called_does_not_hide_the_failure() {
    let first = Server::start(vec![Reply::status(503, "", "{}")]).await;
    let second = Server::start(vec![good()]).await;
    let registry = ProviderRegistry::new()
        .with_provider(ModelServerOptions::new("first", &first.url()))
        .unwrap()
        .with_adapter("broken", Arc::new(Broken))
        .with_provider(ModelServerOptions::new("second", &second.url()))
        .unwrap();
    let mut ask = Ask::default();
    ask.config.model = "first:m".to_owned();
    ask.config.fallback_models = ["unknown:m", "broken:m"].map(str::to_owned).into();
    let (response, other) = (ask.answer(&registry).await, "second:m".to_owned());
    assert_eq!(failure(&response).0.code, ErrorCode::ProviderUnavailable.as_str());
    let first = Server::start(vec![Reply::status(503, "", "{}")]).await;
    let registry = registry.with_provider(ModelServerOptions::new("first", &first.url())).unwrap();
    ask.config.fallback_models.push(other);
    assert_eq!(content(&ask.answer(&registry).await), "Hi.");
}

/// An adapter that cannot be called.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl LlmAdapter for Broken {
    async fn generate_step(&self, _: LlmRequest<'_>, _: &dyn LlmSink) -> Result<LlmResponse> {
        Err(Error::new(ErrorCode::ConfigInvalid, "broken"))
    }

    fn check(&self, _: &LlmConfig) -> Result<()> {
        Ok(())
    }
}

/// The method that receives the output of [`Cut`].
#[derive(Debug, Clone, Copy)]
enum Output {
    Text,
    Thinking,
    Start,
    Arguments,
    Call,
}

/// An adapter that fails for good after one output.
#[derive(Debug)]
struct Cut(Output);

#[async_trait]
impl LlmAdapter for Cut {
    async fn generate_step(&self, _: LlmRequest<'_>, sink: &dyn LlmSink) -> Result<LlmResponse> {
        match self.0 {
            Output::Text => sink.text_delta("Hi"),
            Output::Thinking => sink.thinking("Hm.", true),
            Output::Start => sink.tool_call_start(0, "lookup"),
            Output::Arguments => sink.tool_call_delta(0, "{}"),
            Output::Call => {
                let arguments = Arguments::parse("{}");
                sink.tool_call(&ParsedToolCall::new("call_1", "lookup", arguments));
            }
        }
        let error = Error::new(ErrorCode::ProviderUnavailable, "the provider is gone").record();
        let result =
            StepResult::Error { error, should_stop: true, stop_reason: Some(StopReason::Error) };
        Ok(LlmResponse::new(result, Usage::default()))
    }

    fn check(&self, _: &LlmConfig) -> Result<()> {
        Ok(())
    }
}
