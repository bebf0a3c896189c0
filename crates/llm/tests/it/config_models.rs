//! The capabilities of single models, in `helix.toml` and in code.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::{Effort, LlmAdapter as _, LlmConfig, ThinkingConfig};
use helix_agents_core::tool::ToolSet;
use helix_agents_llm::{ApiFormat, ModelCapabilities, ModelServer, Sampling};
use serde_json::json;

use crate::config::{check_refused, load};
use crate::support::mock::{Answer, BINDING_BETA, Messages, Mock, Part};
use crate::support::{Ask, Reply, Server, Talk, options, tool};

/// Returns the file with a provider `a` and these capabilities of a model.
fn file(model: &str, members: &str) -> String {
    format!(
        "[providers.a]\nbase_url = \"https://a.example/v1\"\n\n[providers.a.models.\"{model}\"]\n{members}\n"
    )
}

/// Returns the problem of a setting for `a:MODEL`, if there is one.
fn problem(file: &str, model: &str, change: &dyn Fn(&mut LlmConfig)) -> Option<String> {
    let registry = load(&[], Some(file)).unwrap();
    let mut config = LlmConfig::new(format!("a:{model}"));
    change(&mut config);
    let error = registry.check(&config).err()?;
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    Some(error.message().to_owned())
}

fn warm(config: &mut LlmConfig) {
    config.temperature = Some(0.5);
}

fn high(config: &mut LlmConfig) {
    config.thinking = Some(ThinkingConfig::effort(Effort::High));
}

#[test]
fn the_file_describes_an_unknown_model() {
    assert_eq!(problem(&file("other", "can_be_off = true"), "m-1", &warm), None);
    let described = file("m-1", "efforts = [\"low\", \"high\"]\nsampling = \"no\"");
    assert_eq!(problem(&described, "m-1", &high), None);
    assert_eq!(
        problem(&described, "m-1", &warm).unwrap(),
        "the model `m-1` does not support `temperature`"
    );
    // The name is the whole name.
    assert_eq!(problem(&described, "m-1-large", &warm), None);
}

#[test]
fn the_file_changes_single_members_of_a_known_model() {
    let unchanged = file("other", "");
    assert!(problem(&unchanged, "claude-opus-5", &warm).is_some());
    assert_eq!(problem(&unchanged, "claude-opus-5", &high), None);
    let changed = file("claude-opus-5", "sampling = \"yes\"");
    assert_eq!(problem(&changed, "claude-opus-5", &warm), None);
    assert_eq!(problem(&changed, "claude-opus-5", &high), None);
    let changed = file("claude-opus-5", "efforts = []");
    assert!(problem(&changed, "claude-opus-5", &high).unwrap().contains("has no levels of effort"));
}

#[test]
fn unknown_members_and_wrong_types_are_rejected_with_their_line() {
    let refused = |members: &str, words: &[&str]| check_refused(&file("m", members), words);
    refused("budget = true\nefort = []", &["line 6", "efort", "did you mean `efforts`?"]);
    refused("adaptive = true\nbudget = \"yes\"", &["line 6", "boolean"]);
    refused("efforts = [\"huge\"]", &["line 5", "huge"]);
    refused("sampling = true", &["line 5"]);
    check_refused("[providers.a]\nbase_url = \"https://a.example\"\nmodels = 1", &["line 3"]);
}

/// Makes a call with a strict tool to a model `prod` of the Messages API, and returns the request.
async fn request(capabilities: Option<ModelCapabilities>) -> crate::support::Request {
    let server = Server::start(vec![Reply::status(400, "", "{}")]).await;
    let mut options = options(&server).with_format(ApiFormat::AnthropicMessages);
    if let Some(capabilities) = capabilities {
        options = options.with_model_capabilities("prod", capabilities);
    }
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let mut ask = Ask { config: LlmConfig::new("local:prod"), ..Ask::default() };
    ask.tools = std::sync::Arc::new(ToolSet::new(vec![tool("look", schema, true)]));
    ask.force = Some("look");
    ask.answer(&ModelServer::new(options).unwrap()).await;
    server.requests().remove(0)
}

#[tokio::test]
async fn requests_depend_on_the_given_capabilities() {
    let unknown = request(None).await;
    assert_eq!(unknown.json()["tools"][0].get("strict"), None);
    assert_eq!(unknown.json()["tool_choice"]["name"], "look");
    assert_eq!(unknown.header("anthropic-version").as_deref(), Some("2026-10-21"));

    let capabilities = ModelCapabilities::new()
        .with_strict_tools(true)
        .with_forced_tool(false)
        .with_sampling(Sampling::Yes);
    let described = request(Some(capabilities)).await;
    assert_eq!(described.json()["tools"][0]["strict"], true);
    assert_eq!(described.json()["tool_choice"].get("name"), None);
    assert_eq!(described.header("anthropic-version").as_deref(), Some("2023-06-01"));
}

#[tokio::test]
async fn a_described_model_may_bind_its_reasoning() {
    for binds in [true, false] {
        let answer = Answer::Says(vec![Part::Thinking("Hm."), Part::Call("c1")]);
        let mock = Mock::start(Messages::of("a"), vec![answer.clone(), answer]).await;
        let capabilities = ModelCapabilities::new().with_binds_reasoning(binds);
        let options = mock.options("local").with_model_capabilities("prod", capabilities);
        Talk::with("prod").steps(2, &ModelServer::new(options).unwrap()).await;
        let beta = mock.server.requests()[1].header("anthropic-beta");
        assert_eq!(beta.as_deref(), binds.then_some(BINDING_BETA));
        assert_eq!(mock.problems(), [""; 0]);
    }
}

#[test]
fn capabilities_are_created_in_code() {
    let capabilities = ModelCapabilities::new()
        .with_budget(true)
        .with_adaptive(true)
        .with_can_be_off(true)
        .with_efforts([Effort::Low])
        .with_sampling(Sampling::WithoutThinking)
        .with_forced_tool(false)
        .with_strict_tools(true)
        .with_tools_with_schema(false);
    let ModelCapabilities { budget, adaptive, can_be_off, efforts, sampling, .. } = &capabilities;
    assert_eq!((*budget, *adaptive, *can_be_off), (true, true, true));
    assert_eq!((&efforts[..], *sampling), (&[Effort::Low][..], Sampling::WithoutThinking));
    let ModelCapabilities { forced_tool, strict_tools, tools_with_schema, .. } = &capabilities;
    assert_eq!((*forced_tool, *strict_tools, *tools_with_schema), (false, true, false));
}
