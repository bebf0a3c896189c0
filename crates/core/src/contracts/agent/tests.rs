//! Tests of agent definitions, whose problems are all reported at once, and of the registry.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Agent, AgentBuilder, AgentRegistry, CompanionMode, FactoryContext};
use crate::error::{Error, ErrorCode};
use crate::llm::RetryPolicy;
use crate::testing::{builder, echo, result_schema};
use crate::tool::{EffectClass, NoInput, ReconcileOutcome, Tool, ToolContext};

fn problems<O>(builder: AgentBuilder<O>, expected: &Expect) {
    let error = builder.build().unwrap_err();
    assert_eq!(error.code(), ErrorCode::AgentInvalid);
    expected.assert_eq(&error.message().replace("; ", "\n"));
}

fn broken_schema(name: &str) -> Tool {
    Tool::dynamic(name, "d", json!({"type": 1}), |input, _| async { Ok(input) })
}

#[test]
fn names_are_letters_digits_underscores_and_dashes() {
    for name in ["", "two words", "umläut", "a.b", &"x".repeat(65)] {
        let error = Agent::builder(name).system_prompt("p").build().unwrap_err();
        assert!(error.message().contains("the agent's name must be"), "{name}: {error}");
        let tool = echo("t").named(name);
        let error = builder().tool(tool).build().unwrap_err();
        assert!(error.message().contains("must be 1 to 64 letters"), "{name}: {error}");
    }
    assert!(Agent::builder(&"x".repeat(64)).system_prompt("p").build().is_ok());
    assert!(builder().tool(echo("A-z_09")).build().is_ok());
}

/// Models pass the arguments of a call as one object.
#[test]
fn the_input_of_a_tool_must_be_an_object() {
    let tool = |schema| Tool::dynamic("t", "d", schema, |input, _| async { Ok(input) });
    let text = Tool::function("t", "d", |text: String, _: ToolContext| async { Ok(text) });
    for tool in [text, tool(json!({"type": ["string", "null"]}))] {
        let error = builder().tool(tool).build().unwrap_err();
        assert!(error.message().contains("tool `t`: its input must be a JSON object"), "{error}");
    }
    for schema in [json!({}), json!({"type": ["object", "null"]}), json!({"anyOf": [true]})] {
        assert!(builder().tool(tool(schema)).build().is_ok());
    }
}

#[test]
fn a_prompt_is_required_and_may_be_empty() {
    let error = Agent::builder("a").build().unwrap_err();
    assert_eq!(error.message(), "there is no system prompt; call `system_prompt`");
    assert!(Agent::builder("a").system_prompt("").build().is_ok());
}

#[test]
fn limits_must_be_positive() {
    let limits = builder().max_steps(0).tool_concurrency(0).tool_timeout(Duration::ZERO);
    problems(
        limits,
        &expect![[r#"
        `max_steps` and `tool_concurrency` must be at least 1
        `tool_timeout` must be more than zero"#]],
    );
}

#[test]
fn tool_names_are_unique_and_not_reserved() {
    let reserved = ["__finish__", "subagent__x", "companion__x", "workspace__x"];
    for name in reserved {
        let error = builder().tool(echo(name)).build().unwrap_err();
        assert_eq!(error.message(), format!("the tool name `{name}` is reserved"));
    }
    problems(
        builder().tool(echo("a")).tool(echo("b")).tool(echo("a")),
        &expect!["there are two tools named `a`"],
    );
}

#[test]
fn tools_need_a_description_and_a_valid_schema() {
    let error = builder().tool(echo("t").described(" \n")).build().unwrap_err();
    assert!(error.message().contains("tool `t` needs a description"), "{error}");
    let error = builder().tool(broken_schema("t")).build().unwrap_err();
    assert!(error.message().starts_with("tool `t`: not a usable JSON Schema"), "{error}");
}

#[test]
fn tool_options_must_fit_the_effect_class() {
    let reconcile = |_: Value, _| async { ReconcileOutcome::Unknown };
    problems(
        builder().tool(echo("a").reconcile(reconcile)),
        &expect!["tool `a`: `reconcile` needs `EffectClass::AtMostOnce`"],
    );
    let once = || echo("a").effect(EffectClass::AtMostOnce);
    problems(
        builder().tool(once().retry(RetryPolicy::default())),
        &expect!["tool `a`: an at-most-once tool cannot have `retry`"],
    );
    assert!(builder().tool(once().reconcile(reconcile)).build().is_ok());
}

#[test]
fn client_tools_and_approvals_exclude_other_options() {
    let ask = || Tool::client::<NoInput>("ask", "Asks.");
    problems(
        builder().tool(ask().finish_with()),
        &expect!["tool `ask`: a client tool cannot be a finish tool"],
    );
    problems(
        builder().tool(ask().requires_approval()),
        &expect!["tool `ask`: a client tool cannot require approval: its caller decides"],
    );
    problems(
        builder().tool(echo("a").requires_approval().finish_with()),
        &expect!["tool `a`: a finish tool cannot require approval"],
    );
}

fn child(name: &str) -> Agent<Value> {
    let child = Agent::builder(name).system_prompt("p").description("Helps.");
    child.output_schema(result_schema()).build().unwrap()
}

#[test]
fn sub_agents_and_companions_need_unique_names() {
    let both = || builder().companion(&child("a"), CompanionMode::Blocking);
    problems(
        both().companion(&child("a"), CompanionMode::NonBlocking),
        &expect!["there are two companions named `a`"],
    );
    problems(
        both().sub_agent(&child("a")),
        &expect![[r#"
        `a` is a sub-agent and a companion
        rename one of them"#]],
    );
    assert!(both().sub_agent(&child("b")).build().is_ok());
}

/// Returns the names of the tools that the model sees.
fn offered<O>(builder: AgentBuilder<O>) -> Vec<String> {
    let agent = builder.build().unwrap().erased();
    agent.effective_tools().specs().iter().map(|spec| spec.name.to_string()).collect()
}

#[test]
fn a_sub_agent_is_shown_as_a_tool() {
    let agent = builder().sub_agent(&child("helper")).build().unwrap().erased();
    let spec = &agent.effective_tools().specs()[0];
    assert_eq!((&*spec.name, &*spec.description), ("subagent__helper", "Helps."));
    assert_eq!(spec.input_schema.to_value()["required"], json!(["message"]));
}

#[test]
fn companions_add_five_or_six_tools() {
    let five = ["spawnAgent", "sendMessage", "listChildren", "getChildStatus", "terminateChild"];
    let five = five.map(|name| format!("companion__{name}"));
    let non_blocking = || builder().companion(&child("a"), CompanionMode::NonBlocking);
    assert_eq!(offered(non_blocking()), five);
    let mut six = five.to_vec();
    six.push("companion__waitForResult".to_owned());
    assert_eq!(offered(non_blocking().companion(&child("b"), CompanionMode::Blocking)), six);
    assert_eq!(offered(builder().sub_agent(&child("a"))), ["subagent__a"]);
}

#[test]
fn native_output_needs_an_output_type_and_excludes_finish_tools() {
    problems(builder().native_output(), &expect!["`native_output` needs an output type"]);
    let both = builder().tool(echo("t").finish_with()).output_schema(result_schema());
    problems(
        both.native_output(),
        &expect!["`native_output` and a finish tool exclude each other"],
    );
}

#[test]
fn an_output_schema_must_be_valid() {
    let error = builder().output_schema(json!({"type": 1})).build().unwrap_err();
    assert!(error.message().starts_with("the output type: not a usable"), "{error}");
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Notes {
    notes: Vec<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(try_from = "u32")]
struct Even(u32);

impl TryFrom<u32> for Even {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        if number > 0 && number.is_multiple_of(2) {
            Ok(Self(number))
        } else {
            Err("odd".to_owned())
        }
    }
}

impl Serialize for Even {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[test]
fn the_default_state_reads_back_and_fits_the_prompts_type() {
    let error = builder().state::<Even>().build().unwrap_err();
    assert_eq!(
        error.message(),
        "the default state cannot be deserialized again: its type rejects the value"
    );
    let error = builder().system_prompt_of(|_: Notes| String::new()).build().unwrap_err();
    assert!(error.message().contains("the prompt's state type does not fit"), "{error}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let all = Agent::builder("my agent").max_steps(0).native_output();
    let error = all.tool(echo("__finish__")).tool(broken_schema("b")).build().unwrap_err();
    let expected = [
        "the agent's name must be",
        "there is no system prompt",
        "must be at least 1",
        "`__finish__` is reserved",
        "tool `b`: not a usable",
        "`native_output` needs",
    ];
    for problem in expected {
        assert!(error.message().contains(problem), "{problem} is missing: {error}");
    }
}

#[test]
fn a_state_that_no_longer_fits_is_reported_with_its_place() {
    let agent = builder().state::<Notes>().build().unwrap();
    assert!(agent.definition().check_state(&json!({"notes": []})).is_ok());
    let error = agent.definition().check_state(&json!({"notes": 1})).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StateInvalid);
    assert_eq!(agent.definition().initial_state().to_value(), json!({"notes": []}));
}

/// A state type whose `Deserialize` panics on odd numbers.
#[derive(Default, serde::Serialize, schemars::JsonSchema)]
struct Fragile(u32);

impl<'de> serde::Deserialize<'de> for Fragile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(Self::of_even)
    }
}

impl Fragile {
    fn of_even(number: u32) -> Self {
        assert!(number.is_multiple_of(2), "on purpose");
        Self(number)
    }
}

#[test]
fn a_state_type_that_panics_while_it_is_read_is_an_error() {
    let agent = builder().state::<Fragile>().build().unwrap();
    assert!(agent.definition().check_state(&json!(2)).is_ok());
    let error = agent.definition().check_state(&json!(1)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StateInvalid);
    assert!(error.message().ends_with("the state type panicked"), "{error}");
}

fn named(name: &str, description: &str) -> Agent {
    Agent::builder(name).system_prompt("p").description(description).build().unwrap()
}

fn cx() -> FactoryContext {
    FactoryContext { session: "s".into() }
}

#[test]
fn a_registry_resolves_by_name_and_lists_known_names() {
    let registry = AgentRegistry::default();
    registry.register(&named("b", "")).unwrap();
    registry.clone().register(&named("a", "")).unwrap();
    assert_eq!(registry.names(), ["a", "b"], "clones share, names are sorted");
    assert_eq!(&**registry.resolve("a", &cx()).unwrap().name(), "a");
    let error = registry.resolve("c", &cx()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::AgentNotFound);
    assert!(error.message().ends_with("known: [a, b]"), "{error}");
}

#[test]
fn a_registered_name_must_be_replaced_explicitly() {
    let registry = AgentRegistry::default();
    registry.register(&named("a", "old")).unwrap();
    assert_eq!(registry.register(&named("a", "x")).unwrap_err().code(), ErrorCode::AgentInvalid);
    let twice = registry.register_factory("a", |_| Ok(named("a", "x").erased()));
    assert_eq!(twice.unwrap_err().code(), ErrorCode::AgentInvalid);
    assert_eq!(registry.resolve("a", &cx()).unwrap().description(), "old");
    registry.replace(&named("a", "new"));
    assert_eq!(registry.resolve("a", &cx()).unwrap().description(), "new");
}

#[test]
fn a_factory_that_panics_is_an_error_that_names_its_agent() {
    let registry = AgentRegistry::default();
    registry.register_factory("a", |_| panic!("on purpose")).unwrap();
    let error = registry.resolve("a", &FactoryContext { session: "s".into() }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CodePanicked);
    assert!(error.context().any(|fact| fact == ("agent", "a")), "{error}");
}

#[test]
fn a_factory_builds_an_agent_for_the_session_or_fails() {
    let registry = AgentRegistry::default();
    let made = |cx: &FactoryContext| match cx.session.as_str() {
        "s" => Ok(named("a", cx.session.as_str()).erased()),
        _ => Err(Error::new(ErrorCode::ConfigInvalid, "not for you")),
    };
    registry.register_factory("a", made).unwrap();
    assert_eq!(registry.resolve("a", &cx()).unwrap().description(), "s");
    let error = registry.resolve("a", &FactoryContext { session: "t".into() }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
}

#[test]
fn a_clone_is_the_same_definition() {
    let agent = named("a", "");
    assert!(Arc::ptr_eq(&agent.erased(), &agent.clone().erased()));
}
