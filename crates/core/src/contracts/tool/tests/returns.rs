//! Tests of tool return values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::AnyAgent;
use crate::error::ErrorCode;
use crate::event::{FinishOutput, ToolOutcome};
use crate::json::Json;
use crate::step::{finish_output, to_outcome};
use crate::testing::{builder, built, echo, result_schema};
use crate::tool::{
    EffectClass, NoInput, Tool, ToolContext, ToolError, ToolFunction, ToolReturn, ToolSet,
    ToolSpec, is_reserved,
};

fn agent() -> AnyAgent {
    built(builder().output_schema(result_schema()).max_result_bytes(20))
}

fn code(outcome: &ToolOutcome) -> &str {
    match outcome {
        ToolOutcome::Error(error) => &error.code,
        other => panic!("{other:?}"),
    }
}

fn returned(value: Value) -> Result<Json, ToolError> {
    Ok(value.into())
}

#[test]
fn a_result_is_a_success_and_an_error_a_message_for_the_model() {
    let outcome = to_outcome(&agent(), &echo("t"), returned(json!({"a": 1})));
    assert_eq!(outcome, ToolOutcome::Success(json!({"a": 1}).into()));
    let outcome = to_outcome(&agent(), &echo("t"), Err(ToolError::new("no index")));
    let ToolOutcome::Error(error) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.to_string(), "tool_failed: no index");
}

#[test]
fn a_result_that_is_too_large_is_an_error_with_the_reason() {
    let outcome = to_outcome(&agent(), &echo("t"), returned(json!("x".repeat(18))));
    assert!(matches!(outcome, ToolOutcome::Success(_)), "20 bytes with the quotes");
    let outcome = to_outcome(&agent(), &echo("t"), returned(json!("x".repeat(19))));
    assert_eq!(code(&outcome), ErrorCode::ToolResultTooLarge.as_str());
}

#[test]
fn an_error_that_is_too_large_is_shortened() {
    let message = |text: &str| match to_outcome(&agent(), &echo("t"), Err(ToolError::new(text))) {
        ToolOutcome::Error(error) => error.message.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(message(&"x".repeat(20)), "x".repeat(20));
    let expected = format!("{}… (shortened; the error has 201 bytes)", "x".repeat(19));
    assert_eq!(message(&format!("{}{}", "x".repeat(19), "ä".repeat(91))), expected);
}

#[test]
fn a_result_is_checked_against_the_tools_output_schema() {
    let tool = echo("t").output_schema::<Vec<u8>>();
    assert!(matches!(to_outcome(&agent(), &tool, returned(json!([1]))), ToolOutcome::Success(_)));
    let outcome = to_outcome(&agent(), &tool, returned(json!(["x"])));
    assert_eq!(code(&outcome), ErrorCode::ToolFailed.as_str());
}

fn success(value: Value) -> ToolOutcome {
    ToolOutcome::Success(value.into())
}

#[test]
fn only_a_finish_tool_that_succeeded_completes() {
    let finish = echo("t").finish_with();
    assert_eq!(finish_output(&agent(), &echo("t"), &success(json!({"result": "x"}))), None);
    let failed = to_outcome(&agent(), &finish, Err(ToolError::new("no")));
    assert_eq!(finish_output(&agent(), &finish, &failed), None);
    let output = finish_output(&agent(), &finish, &success(json!({"result": "x"})));
    assert_eq!(output, Some(FinishOutput::Output(json!({"result": "x"}).into())));
}

#[test]
fn a_finish_tools_result_is_repaired_or_refused() {
    let finish = echo("t").finish_with();
    let output = finish_output(&agent(), &finish, &success(json!(r#"{"result":"x"}"#)));
    assert_eq!(output, Some(FinishOutput::Output(json!({"result": "x"}).into())));
    let output = finish_output(&agent(), &finish, &success(json!({})));
    let Some(FinishOutput::Invalid(error)) = output else { panic!("{output:?}") };
    assert!(error.is(ErrorCode::OutputInvalid), "{error}");
}

#[test]
fn a_transform_whose_type_does_not_fit_the_result_fails() {
    let finish = echo("t").finish_with_transform(|number: u8| Ok(number));
    let output = finish_output(&agent(), &finish, &success(json!("x")));
    let Some(FinishOutput::Invalid(error)) = output else { panic!("{output:?}") };
    assert!(error.is(ErrorCode::FinishTransformFailed), "{error}");
}

struct Adder {
    to: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    add: u32,
}

#[derive(Serialize)]
struct Total {
    total: u32,
}

impl ToolFunction for Adder {
    type Input = Sum;
    type Output = Total;

    const NAME: &'static str = "add";
    const DESCRIPTION: &'static str = "\n Adds. \n";

    async fn call(&self, input: Sum, _cx: &ToolContext) -> Result<Total, ToolError> {
        Ok(Total { total: self.to.checked_add(input.add).ok_or_else(|| ToolError::new("big"))? })
    }
}

#[test]
fn a_typed_tool_has_its_name_description_and_schema() {
    let tool = Adder { to: 1 }.into_tool();
    assert_eq!(tool.name(), "add");
    assert_eq!(&*tool.description, "Adds.", "trimmed");
    assert_eq!(tool.validate(&json!({"add": 1})), Ok(()));
    let violations = tool.validate(&json!({"add": -1})).unwrap_err();
    assert_eq!(violations, ["at /add: -1 is less than the minimum of 0"]);
    assert_eq!(tool.effect_class(), EffectClass::Idempotent, "the default");
    assert!(!tool.is_finish() && tool.own_timeout().is_none() && tool.retry_policy().is_none());
}

#[test]
fn any_error_type_converts_to_a_tool_error() {
    let parsed: Result<u8, _> = "x".parse::<u8>();
    let error = parsed.into_result().unwrap_err();
    assert_eq!(error.message(), "invalid digit found in string");
    assert!(!error.is_retryable());
    assert!(ToolError::new("busy").retryable().is_retryable());
}

#[test]
fn no_input_accepts_any_object() {
    let tool = Tool::function("t", "d", |_: NoInput, _| async { Ok(1) });
    assert_eq!(tool.validate(&json!({})), Ok(()));
    assert_eq!(tool.validate(&json!({"thoughts": "none"})), Ok(()));
    assert!(tool.validate(&json!(null)).is_err());
}

#[test]
fn names_of_the_framework_are_reserved() {
    for name in ["__finish__", "subagent__", "subagent__x", "companion__y", "workspace__z"] {
        assert!(is_reserved(name), "{name}");
    }
    for name in ["finish", "_finish_", "subagent_x", "my_subagent__x"] {
        assert!(!is_reserved(name), "{name}");
    }
}

#[test]
fn a_tool_set_keeps_its_order_and_is_encoded_once() {
    let spec = |name: &str| ToolSpec::new(name, "d", Json::empty_object());
    let set = ToolSet::new(vec![spec("b"), spec("a")]);
    let encode = |specs: &[ToolSpec], out: &mut Vec<u8>| {
        for spec in specs {
            out.extend_from_slice(spec.name.as_bytes());
        }
    };
    assert_eq!(&*set.encoded("names", encode), b"ba");
    assert_eq!(&*set.encoded("names", |_, _| panic!("encoded twice")), b"ba");
    assert!(!set.is_empty() && ToolSet::default().is_empty());
}
