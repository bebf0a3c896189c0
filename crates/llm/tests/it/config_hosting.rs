//! `hosting` in `helix.toml`.

use helix_agents_core::llm::LlmConfig;
use helix_agents_llm::{ProviderKey, ServerProfile};

use crate::config::{check_refused, load};
use crate::support::{Ask, Reply, Server};

/// Returns the file with a provider `h` that has these lines.
fn file(lines: &str) -> String {
    format!("[providers.h]\napi_key_env = \"H_KEY\"\n{lines}\n")
}

#[test]
fn each_host_has_its_address_and_api() {
    for (hosting, base_url, api) in [
        (
            "azure_openai = { endpoint = \"https://r.openai.azure.com/\" }",
            "https://r.openai.azure.com/openai/v1",
            "openai_responses",
        ),
        (
            "azure_openai_dated = { endpoint = \"https://r.azure.com\", api_version = \"2024-10-21\" }",
            "https://r.azure.com/openai",
            "chat_completions",
        ),
        (
            "foundry_claude = { resource = \"r\" }",
            "https://r.services.ai.azure.com/anthropic",
            "anthropic_messages",
        ),
        (
            "bedrock_claude = { region = \"eu-west-1\" }",
            "https://bedrock-mantle.eu-west-1.api.aws/anthropic",
            "anthropic_messages",
        ),
        (
            "bedrock_openai = { region = \"eu-west-1\" }",
            "https://bedrock-mantle.eu-west-1.api.aws/openai/v1",
            "openai_responses",
        ),
        (
            "bedrock_converse = { region = \"eu-west-1\" }",
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            "bedrock_converse",
        ),
        (
            "vertex_gemini = { project = \"p\", location = \"global\" }",
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google",
            "gemini_generate",
        ),
        (
            "vertex_claude = { project = \"p\", location = \"us-east5\" }",
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic",
            "anthropic_messages",
        ),
    ] {
        let registry = load(&[("H_KEY", "k")], Some(&file(&format!("hosting.{hosting}")))).unwrap();
        let provider = &registry.providers()[0];
        assert_eq!(provider.base_url.as_deref(), Some(base_url), "{hosting}");
        assert_eq!((provider.api, &provider.key), (Some(api), &ProviderKey::Set), "{hosting}");
    }
}

#[test]
fn the_region_of_bedrock_may_come_from_the_environment() {
    let file = file("hosting.bedrock_converse = {}");
    let base_url = |vars: &[(&str, &str)]| {
        let registry = load(&[&[("H_KEY", "k")], vars].concat(), Some(&file));
        registry.map(|registry| registry.providers()[0].base_url.clone().unwrap())
    };
    let default = ("AWS_DEFAULT_REGION", "us-east-1");
    assert!(base_url(&[default]).unwrap().contains("us-east-1"));
    assert!(base_url(&[default, ("AWS_REGION", "eu-west-1")]).unwrap().contains("eu-west-1"));
    let error = base_url(&[]).unwrap_err();
    assert!(error.message().contains("set `region` in its `hosting`, or AWS_REGION"), "{error}");
}

#[tokio::test]
async fn a_hosted_provider_is_called_as_configured() {
    let server = Server::start(vec![Reply::status(400, "", "{}")]).await;
    let lines = format!(
        "hosting.vertex_claude = {{ project = \"p\", location = \"global\" }}\nbase_url = \"{}\"",
        server.url()
    );
    let registry = load(&[("H_KEY", "secret")], Some(&file(&lines))).unwrap();
    let config = LlmConfig::new("h:claude-opus-5");
    Ask { config, ..Ask::default() }.answer(&registry).await;
    let request = &server.requests()[0];
    let path = "POST /v1/models/claude-opus-5:streamRawPredict ";
    assert!(request.head.starts_with(path), "{}", request.head);
    assert_eq!(request.header("authorization").as_deref(), Some("Bearer secret"));
}

#[test]
fn only_a_host_of_two_apis_lets_the_file_choose() {
    let refused = ["`h`", "sets `api`", "one API only"];
    let mut profile = ServerProfile::openai();
    profile.top_k = true;
    let profile = Some(profile);
    for host in [
        "hosting.azure_openai = { endpoint = \"https://r.azure.com\" }",
        "hosting.bedrock_openai = { region = \"eu-west-1\" }",
    ] {
        let chat = file(&format!("{host}\napi = \"chat_completions\"\ntop_k = true"));
        let provider = &load(&[("H_KEY", "k")], Some(&chat)).unwrap().providers()[0];
        assert_eq!((provider.api, &provider.profile), (Some("chat_completions"), &profile));
        let responses = file(&format!("{host}\napi = \"openai_responses\""));
        let provider = &load(&[("H_KEY", "k")], Some(&responses)).unwrap().providers()[0];
        assert_eq!(provider.api, Some("openai_responses"), "{host}");
        check_refused(&file(&format!("{host}\napi = \"gemini_generate\"")), &refused);
    }
    let foundry = "hosting.foundry_claude = { resource = \"r\" }";
    check_refused(&file(&format!("{foundry}\napi = \"openai_responses\"")), &refused);
}

#[test]
fn the_advice_about_a_key_of_chat_completions_depends_on_the_apis_of_the_host() {
    let message = |hosting: &str| {
        let error = load(&[("H_KEY", "k")], Some(&file(&format!("{hosting}\ntop_k = true"))));
        error.unwrap_err().message().to_owned()
    };
    let one = message("hosting.foundry_claude = { resource = \"r\" }");
    assert!(one.ends_with("applies only to Chat Completions; remove the key"), "{one}");
    let two = message("hosting.azure_openai = { endpoint = \"https://r.azure.com\" }");
    assert!(two.ends_with("or set `api = \"chat_completions\"`"), "{two}");
}

#[test]
fn a_known_name_does_not_change_a_hosted_provider() {
    let file = "[providers.openai]\napi_key_env = \"H_KEY\"\n\
                hosting.azure_openai = { endpoint = \"https://r.azure.com\" }\n";
    let vars = [("H_KEY", "k"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")];
    let provider = &load(&vars, Some(file)).unwrap().providers()[0];
    assert_eq!(provider.base_url.as_deref(), Some("https://r.azure.com/openai/v1"));
    assert_eq!(provider.default_model, None);
    // The key of OpenAI is not sent to the host.
    let file = file.replace("api_key_env = \"H_KEY\"\n", "");
    let error = load(&[("OPENAI_API_KEY", "k")], Some(&file)).unwrap_err();
    assert!(error.message().contains("`openai` has no credentials"), "{error}");
}

#[test]
fn invalid_hosting_is_rejected_with_its_line() {
    let refused = |lines: &str, words: &[&str]| check_refused(&file(lines), words);
    refused("hosting.azure = {}", &["line 3", "azure"]);
    refused("hosting.azure_openai = {}", &["line 3", "endpoint"]);
    refused(
        "hosting.bedrock_claude = { regoin = \"x\" }",
        &["line 3", "regoin", "did you mean `region`?"],
    );
    refused("hosting.bedrock_claude = { region = 1 }", &["line 3"]);
    refused("hosting = \"bedrock_claude\"", &["line 3"]);
    let no_key = "[providers.h]\nhosting.foundry_claude = { resource = \"r\" }\n";
    check_refused(no_key, &["`h`", "no credentials", "`api_key_env`"]);
}

#[cfg(not(feature = "sigv4"))]
#[test]
fn without_the_feature_bedrock_needs_a_key() {
    let file = "[providers.h]\nhosting.bedrock_claude = { region = \"eu-west-1\" }\n";
    check_refused(file, &["`h`", "`api_key_env`", "feature `sigv4`"]);
}

#[cfg(feature = "sigv4")]
#[test]
fn without_a_key_bedrock_is_signed_with_the_credentials_of_the_environment() {
    let file = "[providers.h]\nhosting.bedrock_claude = { region = \"eu-west-1\" }\n";
    let id = ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    let key = |vars: &[(&str, &str)]| load(vars, Some(file)).unwrap().providers()[0].key.clone();
    assert_eq!(key(&[id, ("AWS_SECRET_ACCESS_KEY", "s")]), ProviderKey::Set);
    assert_eq!(key(&[id]), ProviderKey::Missing("AWS_SECRET_ACCESS_KEY".to_owned()));
    assert_eq!(key(&[]), ProviderKey::Missing("AWS_ACCESS_KEY_ID".to_owned()));
}

#[cfg(not(feature = "gcp-auth"))]
#[test]
fn without_the_feature_vertex_needs_a_token() {
    let file =
        "[providers.h]\nhosting.vertex_claude = { project = \"p\", location = \"global\" }\n";
    check_refused(file, &["`h`", "`api_key_env`", "feature `gcp-auth`"]);
}

#[cfg(feature = "gcp-auth")]
#[test]
fn without_a_token_vertex_uses_the_credentials_of_the_machine() {
    let file =
        "[providers.h]\nhosting.vertex_claude = { project = \"p\", location = \"global\" }\n";
    assert_eq!(load(&[], Some(file)).unwrap().providers()[0].key, ProviderKey::Set);
}
