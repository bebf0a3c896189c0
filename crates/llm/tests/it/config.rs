//! The environment and `helix.toml`.

use std::io::Write as _;

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::llm::{LlmAdapter as _, LlmConfig};
use helix_agents_llm::ProviderRegistry;
use serde_json::json;

use crate::support::{Ask, Reply, Server, content, stream, text};

fn load(vars: &[(&str, &str)], file: Option<&str>) -> Result<ProviderRegistry> {
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
fn check_refused(file: &str, words: &[&str]) {
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
    assert_eq!(names, [&openai[..], &others, &compatible].concat());
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
}
