//! Images and files that a model does not accept, and the fallback from a model that cannot be used.

use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::llm::{LlmConfig, LlmResponse};
use helix_agents_core::message::{Media, Message, ToolResultMessage, UserMessage};
use helix_agents_core::step::StepResult;
use helix_agents_llm::{
    ApiFormat, ModelCapabilities, ModelServer, ModelServerOptions, ProviderRegistry,
};

use crate::config::load;
use crate::support::{Ask, Reply, Server, content, failure, finish, options, stream, text};

fn good() -> Reply {
    Reply::events(stream([text("Hi."), finish("stop")]))
}

fn image() -> Media {
    Media::from_bytes("image/png", b"PNG")
}

fn error_of(response: &LlmResponse) -> Option<&ErrorRecord> {
    match &response.result {
        StepResult::Error { error, .. } => Some(error),
        _ => None,
    }
}

/// Returns a call with an attached file.
fn asking(model: &str, media: Media) -> Ask {
    let message = UserMessage::new("Look at this.").attach(media);
    let config = LlmConfig::new(format!("local:{model}"));
    Ask { messages: vec![Message::User(message).into()], config, ..Ask::default() }
}

/// Makes a call to a new server with the given options. Returns the code of its error, and the number of requests.
async fn code(
    ask: Ask,
    change: impl FnOnce(ModelServerOptions) -> ModelServerOptions,
) -> (Option<String>, usize) {
    let server = Server::start(vec![good()]).await;
    let adapter = ModelServer::new(change(options(&server))).unwrap();
    let response = ask.answer(&adapter).await;
    let error = error_of(&response).map(|error| error.code.to_string());
    (error, server.requests().len())
}

fn unsupported() -> (Option<String>, usize) {
    (Some("media_unsupported".to_owned()), 0)
}

#[tokio::test]
async fn a_file_that_a_model_does_not_accept_is_refused_before_the_call() {
    let pdf = || Media::from_bytes("application/pdf", b"PDF");
    let with = |capabilities: ModelCapabilities| {
        |options: ModelServerOptions| options.with_model_capabilities("m1", capabilities)
    };
    let (no_images, no_files) =
        (ModelCapabilities::new().with_images(false), ModelCapabilities::new().with_files(false));
    assert_eq!(code(asking("m1", image()), with(no_images.clone())).await, unsupported());
    assert_eq!(code(asking("m1", pdf()), with(no_images)).await, (None, 1));
    assert_eq!(code(asking("m1", pdf()), with(no_files.clone())).await, unsupported());
    assert_eq!(code(asking("m1", image()), with(no_files)).await, (None, 1));
}

#[tokio::test]
async fn only_known_models_refuse_files() {
    let unchanged = |options| options;
    assert_eq!(code(asking("unknown", image()), unchanged).await, (None, 1));
    assert_eq!(code(asking("gpt-4o", image()), unchanged).await, (None, 1));
    assert_eq!(code(asking("o3-mini", image()), unchanged).await, unsupported());
    let known = ModelCapabilities::of("o3-mini").cloned().unwrap();
    let sees = |options: ModelServerOptions| {
        options.with_model_capabilities("o3-mini", known.with_images(true))
    };
    assert_eq!(code(asking("o3-mini", image()), sees).await, (None, 1));
}

#[tokio::test]
async fn the_configuration_file_describes_what_a_model_accepts() {
    for (model, member, expected) in [
        ("m1", "images = false", Some("media_unsupported")),
        ("m1", "files = false", None),
        ("o3-mini", "images = true", None),
        ("o3-mini", "files = false", Some("media_unsupported")),
    ] {
        let server = Server::start(vec![good()]).await;
        let url = server.url();
        let file = format!(
            "[providers.local]\nbase_url = \"{url}\"\n\n[providers.local.models.{model}]\n{member}\n"
        );
        let registry = load(&[], Some(&file)).unwrap();
        let response = asking(model, image()).answer(&registry).await;
        let error = error_of(&response);
        assert_eq!(error.map(|error| &*error.code), expected, "{model} {member}");
    }
}

#[tokio::test]
async fn the_error_names_the_model_and_the_kind_of_file() {
    let server = Server::start(Vec::new()).await;
    let adapter = ModelServer::new(options(&server)).unwrap();
    let response = asking("o3-mini", image()).answer(&adapter).await;
    let (error, should_stop) = failure(&response);
    assert_eq!(error.message, "the model `o3-mini` does not accept images");
    assert!(should_stop);
}

/// Chat Completions sends a note instead of the files of tool results.
#[tokio::test]
async fn files_of_tool_results_are_checked_only_if_the_api_sends_them() {
    let result = ToolResultMessage {
        tool_call_id: "call_1".into(),
        provider_id: None,
        tool_name: "draw".to_owned(),
        content: "\"done\"".to_owned(),
        attachments: vec![image()],
        failed: false,
    };
    let ask = || {
        let mut ask = asking("m1", image());
        ask.messages = vec![
            Message::User(UserMessage::new("Draw.")).into(),
            Message::Tool(result.clone()).into(),
        ];
        ask
    };
    let blind = || ModelCapabilities::new().with_images(false);
    let chat = |options: ModelServerOptions| options.with_model_capabilities("m1", blind());
    assert_eq!(code(ask(), chat).await, (None, 1));
    let responses = |options: ModelServerOptions| {
        options.with_format(ApiFormat::OpenAiResponses).with_model_capabilities("m1", blind())
    };
    assert_eq!(code(ask(), responses).await, unsupported());
}

/// Chat Completions and Converse send a note instead of some files.
#[tokio::test]
async fn files_that_the_api_cannot_send_are_not_checked() {
    let blind = || ModelCapabilities::new().with_images(false).with_files(false);
    let chat = |options: ModelServerOptions| options.with_model_capabilities("m1", blind());
    let converse = |options: ModelServerOptions| {
        options.with_format(ApiFormat::BedrockConverse).with_model_capabilities("m1", blind())
    };
    let pdf = || Media::from_url("application/pdf", "https://example.com/a.pdf");
    let png = || Media::from_url("image/png", "https://example.com/a.png");
    assert_eq!(code(asking("m1", pdf()), chat).await, (None, 1));
    assert_eq!(code(asking("m1", png()), chat).await, unsupported());
    // The server does not answer in this format, but it got the request.
    assert_eq!(code(asking("m1", png()), converse).await.1, 1);
    assert_eq!(code(asking("m1", image()), converse).await, unsupported());
}

#[tokio::test]
async fn a_fallback_gets_the_file_that_the_model_does_not_accept() {
    let (first, second) = (Server::start(Vec::new()).await, Server::start(vec![good()]).await);
    let registry = ProviderRegistry::new()
        .with_provider(ModelServerOptions::new("local", &first.url()))
        .unwrap()
        .with_provider(ModelServerOptions::new("other", &second.url()))
        .unwrap();
    let mut ask = asking("o3-mini", image());
    ask.config.fallback_models = vec!["other:m".to_owned()];
    let response = ask.answer(&registry).await;
    assert_eq!(content(&response), "Hi.");
    assert_eq!(response.failed_attempts[0].code, "media_unsupported");
    assert_eq!(first.requests().len(), 0);
    let sent = second.only_body();
    let parts = sent["messages"][1]["content"].as_array().unwrap();
    assert_eq!((parts[0]["text"].as_str(), parts.len()), (Some("Look at this."), 2));
    assert_eq!(parts[1]["image_url"]["url"], "data:image/png;base64,UE5H");
}

#[tokio::test]
async fn another_model_replies_if_the_first_cannot_be_used() {
    for (code, body) in [
        (ErrorCode::ProviderCredentialsExpired, r#"{"code":"token_expired"}"#),
        (ErrorCode::ProviderModelNotFound, r#"{"code":"model_not_found"}"#),
        (
            ErrorCode::ProviderRegionUnsupported,
            r#"{"code":"unsupported_country_region_territory"}"#,
        ),
        (ErrorCode::MediaUnsupported, r#"{"code":"unsupported_file"}"#),
    ] {
        let first = Server::start(vec![Reply::status(400, "", body)]).await;
        let second = Server::start(vec![good()]).await;
        let registry = ProviderRegistry::new()
            .with_provider(ModelServerOptions::new("local", &first.url()))
            .unwrap()
            .with_provider(ModelServerOptions::new("other", &second.url()))
            .unwrap();
        let mut ask = Ask { max_retries: 2, ..Ask::default() };
        ask.config.fallback_models = vec!["other:m".to_owned()];
        let response = ask.answer(&registry).await;
        assert_eq!(content(&response), "Hi.", "{code}");
        let failed: Vec<_> = response.failed_attempts.iter().map(|failed| &*failed.code).collect();
        assert_eq!(failed, [code.as_str()]);
    }
}
