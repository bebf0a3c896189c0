//! Settings that an API or a model rejects, in conversations.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::{Effort, LlmAdapter as _, ThinkingConfig};
use serde_json::json;

use crate::support::mock::{Answer, Converse, Gemini, Messages, Mock, Part};
use crate::support::{Talk, content};

fn answers() -> Vec<Answer> {
    vec![Answer::Says(vec![Part::Text("Done.")]); 3]
}

#[tokio::test]
async fn a_call_is_forced_only_if_the_model_and_its_reasoning_permit_it() {
    for (model, thinking, is_forced) in [
        ("claude-opus-5", None, true),
        ("claude-opus-5", Some(Effort::High.into()), true),
        ("claude-sonnet-4-5", Some(ThinkingConfig::budget(2000)), false),
        ("claude-sonnet-4-5", Some(ThinkingConfig::off()), true),
        ("claude-haiku-5-5", None, true),
        ("claude-fable-5-1", None, false),
        ("claude-mythos-5-2", None, false),
        ("claude-sonnet-5-5", Some(Effort::Low.into()), false),
    ] {
        let mock = Mock::start(Messages::of("a"), answers()).await;
        let mut talk = Talk::with(model);
        talk.ask.config.thinking = thinking;
        talk.ask.force = Some("lookup");
        assert_eq!(content(&talk.step(&mock.adapter()).await), "Done.", "{:?}", mock.problems());
        assert_eq!(mock.last_body().get("tool_choice").is_some(), is_forced, "{model}");
    }
}

#[tokio::test]
async fn a_call_is_not_forced_together_with_a_budget_of_the_vendor() {
    for (kind, is_forced) in [("enabled", false), ("disabled", true)] {
        let mock = Mock::start(Converse::of("a"), answers()).await;
        let mut talk = Talk::with("anthropic.claude-sonnet-4-5");
        talk.option("additionalModelRequestFields", json!({"thinking": {"type": kind}}));
        talk.ask.force = Some("lookup");
        assert_eq!(content(&talk.step(&mock.adapter()).await), "Done.", "{:?}", mock.problems());
        assert_eq!(mock.last_body()["toolConfig"].get("toolChoice").is_some(), is_forced);
    }
}

#[tokio::test]
async fn the_version_of_the_api_depends_on_the_settings() {
    for (model, temperature, version) in [
        ("claude-fable-5-2", None, "2026-10-21"),
        ("claude-opus-4-6", None, "2023-06-01"),
        ("claude-opus-4-6", Some(0.5), "2023-06-01"),
        ("unknown", Some(0.5), "2023-06-01"),
        ("unknown", None, "2026-10-21"),
    ] {
        let mock = Mock::start(Messages::of("a"), answers()).await;
        let mut talk = Talk::with(model);
        talk.ask.config.temperature = temperature;
        for _ in 0..2 {
            talk.step(&mock.adapter()).await;
            talk.say("Again.");
        }
        assert_eq!(mock.problems(), [""; 0], "{model}");
        let header = mock.server.requests()[1].header("anthropic-version");
        assert_eq!(header.as_deref(), Some(version), "{model}");
    }
}

#[tokio::test]
async fn cached_content_replaces_the_prompt_and_the_tools() {
    let calls = vec![Answer::Says(vec![Part::Call("c1")]), Answer::Says(vec![Part::Text("Done.")])];
    let mock = Mock::start(Gemini::of("a"), calls).await;
    let mut talk = Talk::with("gemini-3-pro");
    talk.option("cachedContent", json!("cachedContents/1"));
    talk.ask.force = Some("lookup");
    talk.steps(2, &mock.adapter()).await;
    assert_eq!(mock.problems(), [""; 0]);
    let body = mock.last_body();
    assert_eq!(body["cachedContent"], "cachedContents/1");
    assert_eq!(body["contents"].as_array().unwrap().len(), 3);
    for (key, value) in [("toolConfig", json!({})), ("cachedContent", json!(1))] {
        let mut talk = talk.fork();
        talk.option(key, value);
        let error = mock.adapter().check(&talk.ask.config).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        assert!(error.message().contains("`cachedContent`"), "{error}");
    }
}

/// Each call is checked, not only the first one of a run.
#[tokio::test]
async fn a_later_call_with_an_output_that_the_model_cannot_make_is_not_sent() {
    let output = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let recursive = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let mock = Mock::start(Messages::of("a"), answers()).await;
    let mut talk = Talk::with("claude-opus-5");
    talk.ask.output_schema = Some(output.clone());
    talk.step(&mock.adapter()).await;
    talk.ask.output_schema = Some(recursive);
    let error = talk.ask.of(&mock.adapter()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert_eq!(mock.server.requests().len(), 1);

    let mock = Mock::start(Gemini::of("a"), answers()).await;
    let mut talk = Talk::with("gemini-3-pro");
    talk.ask.output_schema = Some(output);
    talk.step(&mock.adapter()).await;
    talk.say("Again.");
    // This model accepts either tools or an output.
    talk.model("gemini-2.5-pro");
    let error = talk.ask.of(&mock.adapter()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert_eq!(mock.server.requests().len(), 1);
}
