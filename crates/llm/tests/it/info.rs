//! A registry's description of its providers, and lists of their models.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_llm::{
    ApiFormat, ModelServer, ModelServerOptions, OutputFormat, ProviderKey, ProviderRegistry,
    ServerProfile,
};

use crate::support::{Act, Reply, Server, adapter, adapter_of};

const DETECTION_TIMEOUT: Duration = Duration::from_secs(5);

const FILE: &str = r#"
default_provider = "work"

[providers.local]
base_url = "http://127.0.0.1:9/v1?token=hunter2"
server = "llama_cpp_python"
model = "small"

[providers.keyless]
base_url = "https://models.example.com/v1"
api_key_env = "KEYLESS"

[providers.work]
base_url = "https://work.example.com/v1/"
api_key_env = "WORK"
"#;

#[test]
fn providers_are_described_without_their_keys() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(FILE.as_bytes()).unwrap();
    let lookup = |name: &str| (name == "WORK").then(|| "hunter2".to_owned());
    let registry = ProviderRegistry::from_lookup(&lookup, Some(file.path())).unwrap();
    let [keyless, local, work] = &registry.providers()[..] else { panic!("three providers") };
    assert_eq!(keyless.key, ProviderKey::Missing("KEYLESS".to_owned()));
    assert_eq!((&*local.name, &local.key, local.is_default), ("local", &ProviderKey::None, false));
    assert_eq!(local.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
    assert_eq!(local.default_model.as_deref(), Some("small"));
    assert_eq!(local.profile, Some(ServerProfile::llama_cpp_python()));
    assert_eq!((&work.key, work.is_default), (&ProviderKey::Set, true));
    assert_eq!(work.base_url.as_deref(), Some("https://work.example.com/v1"));
    assert!(!format!("{:?}", registry.providers()).contains("hunter2"));
}

#[test]
fn an_empty_key_is_no_key() {
    let local = ModelServerOptions::new("local", "http://127.0.0.1:9/v1");
    let registry = ProviderRegistry::new().with_provider(local.with_api_key("")).unwrap();
    assert_eq!(registry.providers()[0].key, ProviderKey::None);
}

/// Returns the models of the only provider, which has the key `hunter2`, for this reply.
async fn models(reply: Reply) -> (Result<Vec<String>>, Server) {
    let server = Server::start(vec![reply]).await;
    let options = ModelServerOptions::new("local", &server.url()).with_api_key("hunter2");
    let registry = ProviderRegistry::new().with_provider(options).unwrap();
    (registry.models("local", DETECTION_TIMEOUT).await, server)
}

#[tokio::test]
async fn a_server_is_asked_for_its_models_with_the_key() {
    let reply = Reply::json(r#"{"object":"list","data":[{"id":"small"},{"id":"large","x":1}]}"#);
    let (models, server) = models(reply).await;
    assert_eq!(models.unwrap(), ["small", "large"]);
    let request = &server.requests()[0];
    assert!(request.head.starts_with("GET /v1/models HTTP/1.1"), "{}", request.head);
    assert_eq!(request.header("authorization").as_deref(), Some("Bearer hunter2"));
}

#[tokio::test]
async fn a_server_without_a_model_list_is_an_error() {
    let body = r#"{"error":{"message":"no key hunter2"}}"#;
    for (reply, code) in [
        (Reply::status(401, "", body), ErrorCode::ProviderUnauthorized),
        (Reply::status(404, "", body), ErrorCode::Unsupported),
        (Reply::status(405, "", body), ErrorCode::Unsupported),
        (Reply::status(501, "", body), ErrorCode::Unsupported),
        (Reply::status(503, "", body), ErrorCode::ProviderUnavailable),
        (Reply::json("[]"), ErrorCode::ProviderProtocol),
        (Reply::default().then(Act::Close), ErrorCode::ProviderUnavailable),
    ] {
        let (models, server) = models(reply).await;
        let error = models.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert_eq!(server.requests().len(), 1, "one attempt");
    }
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let server = Server::start(vec![Reply::default().then(Act::AwaitClose)]).await;
    let options = ModelServerOptions::new("local", &server.url());
    let registry = ProviderRegistry::new().with_provider(options).unwrap();
    let error = registry.models("local", Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProviderTimeout);
    server.closed().await;
}

#[tokio::test]
async fn only_a_server_known_to_the_registry_lists_its_models() {
    let server = Server::start(vec![]).await;
    let registry = ProviderRegistry::new().with_adapter("own", Arc::new(adapter(&server)));
    let error = registry.models("own", DETECTION_TIMEOUT).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported);
    let error = registry.models("other", DETECTION_TIMEOUT).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelUnknown);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_profile_describes_its_capabilities() {
    let honoured = |profile: &ServerProfile, name: &str| {
        let found = profile.capabilities().into_iter().find(|capability| capability.name == name);
        found.unwrap_or_else(|| panic!("no capability {name}")).supported
    };
    let (openai, compatible) = (ServerProfile::openai(), ServerProfile::compatible());
    let mut bare = ServerProfile::llama_cpp_python();
    bare.output_format = OutputFormat::Unsupported;
    bare.stream = false;
    for (name, of_openai, of_compatible, of_bare) in [
        ("streaming", true, true, false),
        ("streaming_with_tools", true, true, false),
        ("stream_usage", true, true, false),
        ("strict_output", true, false, false),
        ("native_output", true, true, false),
        ("top_k", false, true, true),
        ("prompt_caching", false, false, false),
    ] {
        assert_eq!(honoured(&openai, name), of_openai, "{name}");
        assert_eq!(honoured(&compatible, name), of_compatible, "{name}");
        assert_eq!(honoured(&bare, name), of_bare, "{name}");
    }
}

#[tokio::test]
async fn each_api_has_its_own_list_of_models() {
    let list = r#"{"data":[{"type":"model","id":"claude-opus-5"}],"has_more":false}"#;
    let gemini = r#"{"models":[{"name":"models/gemini-3-pro","version":"3"}]}"#;
    for (format, body, model) in [
        (ApiFormat::AnthropicMessages, list, "claude-opus-5"),
        (ApiFormat::GeminiGenerate, gemini, "gemini-3-pro"),
    ] {
        let server = Server::start(vec![Reply::json(body)]).await;
        let found = adapter_of(&server, format.clone()).models(DETECTION_TIMEOUT).await.unwrap();
        assert_eq!(found, [model]);
        let request = &server.requests()[0];
        assert!(request.head.starts_with("GET /v1/models "), "{}", request.head);
        let has_version = request.header("anthropic-version").is_some();
        assert_eq!(has_version, matches!(format, ApiFormat::AnthropicMessages));
    }
}

#[tokio::test]
async fn the_list_of_a_dated_azure_version_names_the_version() {
    let server = Server::start(vec![Reply::json(r#"{"data":[]}"#)]).await;
    let mut options =
        ModelServerOptions::azure_openai_dated("azure", "https://r.azure.com", "2024-10-21");
    options.base_url = server.url();
    ModelServer::new(options).unwrap().models(DETECTION_TIMEOUT).await.unwrap();
    let head = &server.requests()[0].head;
    assert!(head.starts_with("GET /v1/models?api-version=2024-10-21 "), "{head}");
}
