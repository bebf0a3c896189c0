//! The data file, and the search in it.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::{Effort, LlmConfig, ThinkingConfig};

use super::{ModelCapabilities, Sampling};

#[test]
fn the_data_file_is_valid() {
    let models: std::collections::BTreeMap<String, ModelCapabilities> =
        toml::from_str(include_str!("models.toml")).unwrap();
    assert!(models.len() > 40);
}

#[test]
fn names_of_hosts_and_dates_do_not_matter() {
    let sonnet = ModelCapabilities::of("claude-sonnet-4-5").unwrap();
    for name in [
        "claude-sonnet-4-5-20250929",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic/claude-sonnet-4-5",
        "claude-sonnet-4-5@20250929",
    ] {
        assert!(std::ptr::eq(ModelCapabilities::of(name).unwrap(), sonnet), "{name}");
    }
}

#[test]
fn the_longest_name_applies_and_other_versions_are_unknown() {
    assert!(ModelCapabilities::of("claude-opus-5").unwrap().forced_tool);
    assert!(!ModelCapabilities::of("claude-opus-5-5").unwrap().forced_tool);
    assert!(ModelCapabilities::of("us.anthropic.claude-fable-5-1-v1:0").unwrap().binds_reasoning);
    assert!(!ModelCapabilities::of("claude-mythos-5-1").unwrap().binds_reasoning);
    assert_eq!(ModelCapabilities::of("gpt-5-chat-latest").unwrap().sampling, Sampling::Yes);
    assert_eq!(ModelCapabilities::of("gpt-5-mini").unwrap().sampling, Sampling::No);
    for unknown in ["claude-opus-5-9", "gpt-5.9", "gpt-50", "my-o3x", "llama-4", ""] {
        assert_eq!(ModelCapabilities::of(unknown), None, "{unknown}");
    }
}

#[test]
fn unsupported_settings_are_rejected_with_the_alternatives() {
    let problem = |model: &str, change: &dyn Fn(&mut LlmConfig)| {
        let mut config = LlmConfig::new(model);
        change(&mut config);
        let checked = ModelCapabilities::of(model).unwrap().check(model, &config);
        checked.err().map(|error| {
            assert_eq!(error.code(), ErrorCode::ConfigInvalid);
            error.message().to_owned()
        })
    };
    let thinking =
        |thinking: ThinkingConfig| move |config: &mut LlmConfig| config.thinking = Some(thinking);
    assert_eq!(
        problem("gpt-5", &thinking(Effort::Max.into())).unwrap(),
        "the model `gpt-5` does not support the effort `max`, only minimal, low, medium, high"
    );
    assert_eq!(problem("gpt-5", &thinking(Effort::Low.into())), None);
    assert_eq!(
        problem("gpt-5", &thinking(ThinkingConfig::off())).unwrap(),
        "the model `gpt-5` cannot turn its reasoning off"
    );
    assert_eq!(
        problem("claude-opus-5", &thinking(ThinkingConfig::budget(1000))).unwrap(),
        "the model `claude-opus-5` has no token budget for its reasoning"
    );
    assert_eq!(
        problem("claude-opus-5", &|config| config.temperature = Some(0.5)).unwrap(),
        "the model `claude-opus-5` does not support `temperature`"
    );
    assert_eq!(
        problem("gpt-5.1", &|config| config.top_p = Some(0.5)).unwrap(),
        "the model `gpt-5.1` supports `top_p` only if its reasoning is turned off"
    );
    let off = |config: &mut LlmConfig| {
        config.top_p = Some(0.5);
        config.thinking = Some(ThinkingConfig::off());
    };
    assert_eq!(problem("gpt-5.1", &off), None);
}
