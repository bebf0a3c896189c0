//! The environment and `helix.toml`.

use std::io::Write as _;

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::llm::{LlmAdapter as _, LlmConfig};
use helix_agents_llm::{ProviderKey, ProviderRegistry, ProviderSource, ServerProfile};
use serde_json::json;

use crate::support::{Ask, Reply, Server, content, stream, text};

pub(crate) fn load(vars: &[(&str, &str)], file: Option<&str>) -> Result<ProviderRegistry> {
    let lookup = |name: &str| {
        let found = vars.iter().find(|entry| entry.0 == name);
        found.map(|entry| entry.1.to_owned())
    };
    let Some(text) = file else {
        return ProviderRegistry::from_lookup(&lookup, None);
    };
    let mut on_disk = tempfile::NamedTempFile::new().unwrap();
    on_disk.write_all(text.as_bytes()).unwrap();
    ProviderRegistry::from_lookup(&lookup, Some(on_disk.path()))
}

fn check(registry: &ProviderRegistry, model: &str) -> Result<()> {
    let config = LlmConfig::new(model);
    registry.check(&config)
}

#[track_caller]
pub(crate) fn check_refused(file: &str, words: &[&str]) {
    let error = load(&[], Some(file)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    for word in words {
        assert!(error.message().contains(word), "{word} in {error}");
    }
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn nothing_configured_is_an_empty_registry() {
    assert!(load(&[], None).unwrap().is_empty());
    assert!(load(&[("OPENAI_API_KEY", " ")], None).unwrap().is_empty());
}

#[test]
fn a_key_or_an_address_in_the_environment_makes_a_provider() {
    let registry = load(&[("OPENAI_API_KEY", "k")], None).unwrap();
    check(&registry, "openai:gpt").unwrap();
    let registry = load(&[("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")], None).unwrap();
    check(&registry, "openai:gpt").unwrap();
    let both = [("OPENAI_BASE_URL", "http://10.0.0.1/v1"), ("OPENAI_API_KEY", "k")];
    assert_eq!(load(&both, None).unwrap_err().code(), ErrorCode::ConfigInvalid);
}

#[test]
fn the_usual_variable_of_a_provider_configures_it() {
    for (variable, model, host) in [
        ("ANTHROPIC_API_KEY", "anthropic:claude-haiku-4-5", "https://api.anthropic.com"),
        ("GEMINI_API_KEY", "gemini:gemini-2.5-flash", "https://generativelanguage.googleapis.com"),
    ] {
        let registry = load(&[(variable, "k")], None).unwrap();
        assert_eq!(registry.default_model().unwrap().to_string(), model);
        let base_url = registry.providers()[0].base_url.clone().unwrap();
        assert!(base_url.starts_with(host), "{base_url}");
        // OpenAI comes first.
        let registry = load(&[(variable, "k"), ("OPENAI_API_KEY", "k")], None).unwrap();
        assert_eq!(registry.default_model().unwrap().to_string(), "openai:gpt-4.1-mini");
    }
    let registry = load(&[("GROQ_API_KEY", "k")], None).unwrap();
    check(&registry, "groq:llama").unwrap();
    assert_eq!(registry.default_model().unwrap_err().code(), ErrorCode::ModelUnknown);
}

#[test]
fn the_default_model_comes_from_the_environment_or_the_default_provider() {
    let key = ("OPENAI_API_KEY", "k");
    let of = |vars: &[(&str, &str)], file: Option<&str>| {
        let registry = load(vars, file).unwrap();
        registry
            .default_model()
            .map_or_else(|error| error.message().to_owned(), |model| model.to_string())
    };
    assert_eq!(of(&[key], None), "openai:gpt-4.1-mini");
    assert_eq!(of(&[key, ("HELIX_MODEL", " ")], None), "openai:gpt-4.1-mini");
    assert_eq!(of(&[key, ("HELIX_MODEL", "openai:big")], None), "openai:big");
    assert_eq!(of(&[key, ("HELIX_MODEL", "big")], None), "openai:big");
    let elsewhere = of(&[key, ("HELIX_MODEL", "elsewhere:big")], None);
    assert!(elsewhere.starts_with("no provider `elsewhere` is configured"), "{elsewhere}");

    let mut file = "[providers.a]\nbase_url = \"https://a.example/v1\"\n".to_owned();
    assert_eq!(of(&[("HELIX_MODEL", "a:b")], Some(&file)), "a:b");
    // Of several providers, `openai` comes first unless the file names another one.
    assert_eq!(of(&[key], Some(&file)), "openai:gpt-4.1-mini");
    file.push_str("model = \"small\"\n[providers.openai]\nmodel = \"big\"\n");
    assert_eq!(of(&[], Some(&file)), "openai:big");
    assert_eq!(of(&[], Some(&format!("default_provider = \"a\"\n{file}"))), "a:small");
    // A named model without a provider has no default provider.
    let named = load(&[], Some(&file)).unwrap().model("m").unwrap_err();
    assert!(named.message().contains("there is no default one"), "{named}");
}

#[tokio::test]
async fn a_provider_from_the_file_is_used_as_configured() {
    let server = Server::start(vec![Reply::events(stream([text("Hi.")]))]).await;
    let file = format!(
        r#"
        default_provider = "box"
        [providers.box]
        base_url = "{}"
        api_key_env = "BOX_KEY"
        model = "small"
        server = "llama_cpp_python"
        max_tokens_field = "max_completion_tokens"
        stream_usage = false
        finish_reasons = false
        read_timeout_ms = 5000
        [providers.openai]
        "#,
        server.url()
    );
    let registry = load(&[("BOX_KEY", "box-key-1")], Some(&file)).unwrap();
    let mut ask = Ask::default();
    ask.config.model = String::new();
    ask.config.max_output_tokens = Some(9);
    ask.output_schema = Some(json!({"type": "object"}));
    assert_eq!(content(&ask.answer(&registry).await), "Hi.");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization").unwrap(), "Bearer box-key-1");
    let body = request.json();
    assert_eq!(body["model"], "small");
    assert_eq!(body["max_completion_tokens"], 9);
    assert_eq!(body["response_format"]["type"], "json_object");
    assert_eq!(body.get("stream_options"), None);
}

#[test]
fn a_missing_key_is_an_error_only_when_it_is_used() {
    let file = r#"
        [providers.a]
        base_url = "https://a.example/v1"
        api_key_env = "A_KEY"
        model = "big"
        [providers.b]
        base_url = "https://b.example/v1"
    "#;
    let registry = load(&[], Some(file)).unwrap();
    check(&registry, "b:m").unwrap();
    let error = check(&registry, "a:m").unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert_eq!(error.message(), "the key of the provider `a` is missing: set A_KEY");
    // The model is known nevertheless, so the error is about the missing key.
    assert_eq!(registry.model("a:").unwrap().to_string(), "a:big");
}

#[test]
fn unknown_or_invalid_entries_are_rejected_with_their_line() {
    check_refused("colour = 1", &["line 1", "colour"]);
    check_refused(
        "\n[providers.a]\nbase_ulr = \"x\"",
        &["line 3", "base_ulr", "did you mean `base_url`?"],
    );
    check_refused("[provider.a]", &["line 1", "did you mean `providers`?"]);
    check_refused(
        "[providers.a]\nbase_url = \"https://x.example\"\napi_key = \"hunter2\"",
        &["line 3", "api_key"],
    );
    check_refused("[providers.a]\nserver = \"hunter\"", &["line 2", "llama_cpp_python"]);
    check_refused("[providers.a]\nmodel = \"m\"", &["`a`", "base_url"]);
    check_refused("[providers.a]\nbase_url = 3", &["line 2"]);
    check_refused("not toml at all = = hunter2", &["line 1"]);
    check_refused("default_provider = \"x\"", &["`x`"]);
    check_refused("[providers.\"a b\"]\nbase_url = \"https://x.example\"", &["a b"]);
}

#[test]
fn plain_http_for_a_key_has_to_be_allowed() {
    let file = |extra: &str| {
        format!("[providers.a]\nbase_url = \"http://10.0.0.1/v1\"\napi_key_env = \"K\"\n{extra}")
    };
    let error = load(&[("K", "k")], Some(&file(""))).unwrap_err();
    assert!(error.message().contains("allow_http"), "{error}");
    load(&[("K", "k")], Some(&file("allow_http = true"))).unwrap();
}

#[test]
fn the_file_must_be_readable_if_it_is_named() {
    let missing = std::path::Path::new("no-such-folder/helix.toml");
    let error = ProviderRegistry::from_lookup(&|_| None, Some(missing)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
}

#[test]
fn every_variable_that_is_read_is_described() {
    let names: Vec<&str> =
        helix_agents_llm::env::ALL.iter().map(|variable| variable.name).collect();
    let openai = ["HELIX_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"];
    let others = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GEMINI_API_KEY", "XAI_API_KEY"];
    let compatible = ["GROQ_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY"];
    let regions = ["AWS_REGION", "AWS_DEFAULT_REGION"];
    let mut expected = [&openai[..], &others, &compatible, &regions].concat();
    if cfg!(feature = "sigv4") {
        expected.extend(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]);
    }
    assert_eq!(names, expected);
}

#[tokio::test]
async fn a_known_provider_keeps_its_api_at_another_address() {
    for (name, path) in
        [("anthropic", "POST /v1/messages "), ("gemini", "POST /v1/models/m:stream")]
    {
        let server = Server::start(vec![Reply::status(401, "", "{}")]).await;
        let file = format!("[providers.{name}]\nbase_url = \"{}\"\n", server.url());
        let registry = load(&[], Some(&file)).unwrap();
        let config = LlmConfig::new(format!("{name}:m"));
        Ask { config, ..Ask::default() }.answer(&registry).await;
        let head = &server.requests()[0].head;
        assert!(head.starts_with(path), "{head}");
    }
}

#[test]
fn keys_of_chat_completions_are_rejected_for_another_api() {
    let file = "[providers.anthropic]\nempty_content = true\n";
    check_refused(file, &["`anthropic`", "`empty_content`", "Chat Completions"]);
    let file = "[providers.openai]\nstrict_tools = false\n";
    check_refused(file, &["`openai`", "`strict_tools`", "`api = \"chat_completions\"`"]);
}

/// Returns the API of the provider `openai`, and its profile of Chat Completions.
fn api_of_openai(
    base_url: Option<&str>,
    file: Option<&str>,
) -> (&'static str, Option<ServerProfile>) {
    let url = base_url.map(|url| ("OPENAI_BASE_URL", url));
    let vars: Vec<_> = url.into_iter().chain([("OPENAI_API_KEY", "k")]).collect();
    let mut providers = load(&vars, file).unwrap().providers();
    assert_eq!((providers.len(), &*providers[0].name), (1, "openai"));
    let provider = providers.remove(0);
    (provider.api.unwrap(), provider.profile)
}

#[test]
fn openai_uses_responses_at_its_own_address_only() {
    let responses = ("openai_responses", None);
    assert_eq!(api_of_openai(None, None), responses);
    assert_eq!(api_of_openai(Some("https://api.openai.com/v1/"), None), responses);
    assert_eq!(api_of_openai(Some("https://eu.api.openai.com/v1"), None), responses);
    let compatible = ("chat_completions", Some(ServerProfile::compatible()));
    assert_eq!(api_of_openai(Some("http://127.0.0.1:8080/v1"), None), compatible);
    assert_eq!(api_of_openai(Some("https://api.openai.com.example.org/v1"), None), compatible);

    assert_eq!(api_of_openai(None, Some("[providers.openai]\nmodel = \"m\"\n")), responses);
    let chat = "[providers.openai]\napi = \"chat_completions\"\n";
    let profile = Some(ServerProfile::openai());
    assert_eq!(api_of_openai(None, Some(chat)), ("chat_completions", profile));
    let chosen = "[providers.openai]\napi = \"openai_responses\"\n";
    assert_eq!(api_of_openai(Some("http://127.0.0.1:8080/v1"), Some(chosen)), responses);
}

#[tokio::test]
async fn calls_of_openai_go_to_the_path_of_its_api() {
    for (api, path) in [
        ("openai_responses", "POST /v1/responses "),
        ("chat_completions", "POST /v1/chat/completions "),
    ] {
        let server = Server::start(vec![Reply::status(401, "", "{}")]).await;
        let file =
            format!("[providers.openai]\nbase_url = \"{}\"\napi = \"{api}\"\n", server.url());
        let registry = load(&[], Some(&file)).unwrap();
        let config = LlmConfig::new("openai:m");
        Ask { config, ..Ask::default() }.answer(&registry).await;
        let head = &server.requests()[0].head;
        assert!(head.starts_with(path), "{head}");
    }
}

#[test]
fn the_source_of_a_provider_is_known() {
    let file = "[providers.box]\nbase_url = \"https://b.example/v1\"\napi_key_env = \"BOX\"\n\
                [providers.open]\nbase_url = \"https://o.example/v1\"\n";
    let url = ("ANTHROPIC_BASE_URL", "https://a.example");
    let registry = load(&[url, ("GEMINI_API_KEY", "k"), ("BOX", "b")], Some(file)).unwrap();
    let providers = registry.providers();
    let [anthropic, boxed, gemini, open] = &providers[..] else { panic!("{providers:?}") };
    assert_eq!(anthropic.source, ProviderSource::Variable("ANTHROPIC_BASE_URL"));
    assert_eq!(anthropic.key, ProviderKey::None);
    assert_eq!(anthropic.key_variable.as_deref(), Some("ANTHROPIC_API_KEY"));
    assert_eq!(gemini.source, ProviderSource::Variable("GEMINI_API_KEY"));
    assert_eq!(gemini.key_variable.as_deref(), Some("GEMINI_API_KEY"));
    assert!(matches!(boxed.source, ProviderSource::File(_)), "{boxed:?}");
    assert_eq!((&boxed.key, boxed.key_variable.as_deref()), (&ProviderKey::Set, Some("BOX")));
    assert_eq!((&open.source, &open.key_variable), (&boxed.source, &None));
}
