//! Parsing of a model's text as a plan.

use serde_json::{Value, json};

use super::parse;
use crate::plan::Problem;

#[test]
fn the_first_object_is_used_whatever_surrounds_it() {
    let plan = json!({ "next_action": "execute", "n": 1 });
    for text in [
        plan.to_string(),
        format!("```json\n{plan}\n```"),
        format!("Here is the plan: {plan} Good luck."),
    ] {
        assert_eq!(parse(&text, false), Ok(plan.clone()), "{text}");
    }
}

#[test]
fn text_without_an_object_is_not_a_plan() {
    assert_eq!(parse("I would just answer.", false), Ok(Value::Null));
    assert_eq!(parse("", false), Ok(Value::Null));
}

/// Weakness 5: a plan that was cut off was completed by guessing, and executed.
#[test]
fn weakness_5_an_incomplete_object_is_not_a_plan() {
    let text = r#"{"next_action":"execute","execution_commands":[{"tool_name":"rm","tool_kwargs":{"path":"/data/tmp"#;
    assert_eq!(parse(text, false), Err(Problem::CutOff));
    let whole = r#"{"next_action":"execute","execution_commands":[{"tool_name":"rm"}]}"#;
    assert_eq!(parse(whole, true), Err(Problem::CutOff), "stopped at the token limit");
    assert_eq!(parse("{next_action: execute}", false), Err(Problem::Malformed));
}

#[test]
fn a_response_counts_even_if_its_end_is_missing() {
    let response = Ok(json!({ "next_action": "response" }));
    assert_eq!(parse(r#"{"next_action":"response","execution_comm"#, true), response);
}
