//! Completion of an agent: `__finish__` or the user's finish tools, never both; and phase 2.

use expect_test::expect;
use serde_json::{Value, json};

use crate::agent::Completion;
use crate::error::ErrorCode;
use crate::step::{Action, StepResult, build_effective_tools};
use crate::testing::{
    Hand, action_text, builder, built, calls, echo, failing, finish, result_schema,
};
use crate::tool::{Tool, ToolContext, ToolError};

fn names_and_strictness(agent: &crate::agent::AnyAgent) -> Vec<String> {
    let specs = agent.effective_tools().specs().iter();
    specs.map(|spec| format!("{}{}", spec.name, if spec.strict { " strict" } else { "" })).collect()
}

#[test]
fn finish_is_injected_last_for_an_agent_with_an_output_type() {
    let agent = built(builder().tool(echo("search")).output_schema(result_schema()));
    assert_eq!(names_and_strictness(&agent), ["search", "__finish__"]);
    assert_eq!(*agent.completion(), Completion::Finish);
    let schema = agent.effective_tools().specs()[1].input_schema.to_value();
    assert_eq!(schema, result_schema(), "its arguments are the output");
}

#[test]
fn finish_is_not_injected_if_there_is_a_finish_tool() {
    let agent = built(builder().tool(echo("submit").finish_with()).output_schema(json!({})));
    assert_eq!(names_and_strictness(&agent), ["submit"]);
    assert_eq!(*agent.completion(), Completion::FinishTools(vec!["submit".into()]));
}

#[test]
fn finish_is_not_injected_without_an_output_type_or_with_a_native_one() {
    assert_eq!(names_and_strictness(&built(builder().tool(echo("search")))), ["search"]);
    let native = built(builder().output_schema(result_schema()).native_output());
    assert_eq!(names_and_strictness(&native), Vec::<String>::new());
    assert_eq!(*native.completion(), Completion::Native);
}

#[test]
fn strict_is_off_by_default_and_opted_into_one_by_one() {
    let output = || builder().output_schema(result_schema());
    assert_eq!(names_and_strictness(&built(output())), ["__finish__"]);
    assert_eq!(names_and_strictness(&built(output().strict_output(true))), ["__finish__ strict"]);
    let own = builder().tool(echo("submit").finish_with().strict()).tool(echo("search"));
    assert_eq!(names_and_strictness(&built(own.strict_output(true))), ["submit strict", "search"]);
}

#[test]
fn an_output_that_is_not_an_object_is_wrapped_in_one() {
    let tools = |schema: Value| {
        let agent = built(builder().output_schema(schema));
        agent.effective_tools().specs()[0].input_schema.to_value()
    };
    let list = json!({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "string"}}});
    assert_eq!(
        tools(list),
        json!({
            "type": "object",
            "properties": {"output": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
            "required": ["output"],
            "additionalProperties": false,
            "$defs": {"A": {"type": "string"}},
        })
    );
    let agent = built(builder().output_schema(json!({"type": "integer"})));
    let mut hand = Hand::new(&agent);
    hand.drive([finish(json!({"output": 7}))]);
    assert_eq!(hand.session().last_run().unwrap().output, Some(json!(7).into()));
}

#[test]
fn a_tool_with_an_unusable_schema_has_no_effective_form() {
    let tool = Tool::dynamic("t", "d", json!({"type": 1}), |input, _| async { Ok(input) });
    let llm = crate::llm::LlmConfig::default();
    let error =
        build_effective_tools(&[tool], Vec::new(), None, &Completion::Text, &llm).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ToolInvalid);
}

fn mixed() -> crate::agent::AnyAgent {
    let sum =
        Tool::dynamic("sum", "Adds.", json!({"type": "object"}), |_, cx: ToolContext| async move {
            let notes: Value = cx.state()?;
            Ok(json!({"seen": notes["notes"]}))
        });
    let note = Tool::dynamic(
        "note",
        "Notes.",
        json!({"type": "object"}),
        |input: Value, cx: ToolContext| async move {
            cx.update_state(|state: &mut Notes| state.notes.push(input["n"].to_string()))?;
            Ok(json!("noted"))
        },
    );
    built(builder().state::<Notes>().tool(sum.finish_with()).tool(note))
}

#[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Notes {
    notes: Vec<String>,
}

fn both() -> StepResult {
    calls([("sum", json!({})), ("note", json!({"n": 1})), ("note", json!({"n": 2}))])
}

#[test]
fn finish_tools_run_after_the_others_and_see_their_state() {
    let mut hand = Hand::new(&mixed());
    hand.drive([both()]);
    expect![[r#"
        reply 1: 1.0 sum({}), 1.1 note({"n":1}), 1.2 note({"n":2})
        finished 1.2: "noted"; patch [{"op":"add","path":"/notes/-","value":"2"}]
        finished 1.1: "noted"; patch [{"op":"add","path":"/notes/-","value":"1"}]
        finished 1.0: {"seen":["1","2"]}; output {"seen":["1","2"]}
        closed 1
        ended completed: {"seen":["1","2"]}
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn phase_two_waits_for_every_call_of_phase_one() {
    let mut hand = Hand::new(&mixed());
    hand.reply(both());
    assert_eq!(action_text(&hand.next()), "run 1.1 try 1, 1.2 try 1");
    hand.result("1.2", json!("noted"));
    assert_eq!(action_text(&hand.next()), "run 1.1 try 1");
    hand.result("1.1", json!("noted"));
    assert_eq!(action_text(&hand.next()), "run finish tool 1.0 try 1");
    hand.result("1.0", json!(0));
    assert_eq!(
        action_text(&hand.next()),
        "call model 2",
        "a result without a finish does not complete the turn"
    );
}

#[test]
fn finish_tools_run_one_after_another_in_call_order() {
    let tools = builder().tool(echo("a").finish_with()).tool(echo("b").finish_with());
    let mut hand = Hand::new(&built(tools));
    hand.reply(calls([("b", json!({})), ("a", json!({}))]));
    assert!(matches!(hand.next(), Action::RunFinishTool(task) if task.call.as_str() == "1.0"));
    hand.result("1.0", json!(1));
    assert!(matches!(hand.next(), Action::RunFinishTool(task) if task.call.as_str() == "1.1"));
}

#[test]
fn the_second_finish_tool_completes_if_the_first_fails() {
    let tools = builder().tool(failing("a", "no").finish_with()).tool(echo("b").finish_with());
    let mut hand = Hand::new(&built(tools));
    hand.drive([calls([("a", json!({})), ("b", json!({"x": 2}))])]);
    expect![[r#"
        reply 1: 1.0 a({}), 1.1 b({"x":2})
        finished 1.0: error tool_failed: no
        finished 1.1: {"x":2}; output {"x":2}
        closed 1
        ended completed: {"x":2}
    "#]]
    .assert_eq(&hand.story());
}

#[test]
fn a_finish_tools_output_that_does_not_fit_fails_without_a_retry() {
    let tool = echo("submit").finish_with();
    let mut hand = Hand::new(&built(builder().tool(tool).output_schema(result_schema())));
    hand.drive([calls([("submit", json!({"x": 1}))])]);
    let error = hand.session().last_run().unwrap().error.clone().unwrap();
    assert!(error.is(ErrorCode::OutputInvalid), "{error}");
    assert!(error.message.starts_with("the result of `submit` does not fit"), "{error}");
    assert_eq!(hand.session().corrections(), 0);
}

#[test]
fn output_is_validated_after_the_transform() {
    let tool = echo("submit").finish_with_transform(|_: Value| Ok(json!({"wrong": 1})));
    let mut hand = Hand::new(&built(builder().tool(tool).output_schema(result_schema())));
    hand.drive([calls([("submit", json!({}))])]);
    assert!(hand.session().last_run().unwrap().error.clone().unwrap().is(ErrorCode::OutputInvalid));
}

#[test]
fn a_failed_transform_fails_the_run_even_if_a_later_finish_tool_succeeds() {
    let bad = echo("a").finish_with_transform(|_: Value| Err::<Value, _>(ToolError::new("no")));
    let mut hand = Hand::new(&built(builder().tool(bad).tool(echo("b").finish_with())));
    hand.drive([calls([("a", json!({})), ("b", json!({}))])]);
    let error = hand.session().last_run().unwrap().error.clone().unwrap();
    assert!(error.is(ErrorCode::FinishTransformFailed), "{error}");
}
