//! Repair of outputs that almost fit their schema.

use serde_json::{Value, json};

use crate::schema::Schema;
use crate::step::repair_output;

fn repaired(schema: Value, output: &Value) -> Result<Value, Vec<String>> {
    repair_output(output, &Schema::from_value(schema).unwrap())
}

fn findings() -> Value {
    json!({
        "type": "object",
        "properties": {
            "findings": {"type": "string"},
            "gaps": {"type": "array", "items": {"type": "string"}},
            "score": {"$ref": "#/$defs/Score"},
        },
        "required": ["findings", "gaps"],
        "$defs": {"Score": {"type": "object", "properties": {"of": {"type": "integer"}}, "required": ["of"]}},
    })
}

#[test]
fn an_output_that_fits_is_left_as_it_is() {
    let output = json!({"findings": "[1]", "gaps": ["```"]});
    assert_eq!(repaired(findings(), &output), Ok(output));
}

#[test]
fn json_as_text_is_parsed_with_and_without_fences() {
    let fitting = json!({"findings": "f", "gaps": []});
    let text = fitting.to_string();
    let forms = [
        text.clone(),
        format!("  {text}\n"),
        format!("```json\n{text}\n```"),
        format!("```\n{text}\n```\n"),
        format!("```{text}```"),
    ];
    for form in forms {
        assert_eq!(repaired(findings(), &json!(form)), Ok(fitting.clone()), "{form}");
    }
}

#[test]
fn one_value_becomes_an_array_where_one_is_wanted() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(repaired(list.clone(), &json!(3)), Ok(json!([3])));
    assert!(repaired(list, &json!("three")).is_err(), "an array of the wrong type is not a repair");
}

#[test]
fn members_are_repaired_one_by_one() {
    let output = json!({"findings": "f", "gaps": "one", "score": "{\"of\": 3}"});
    let fitting = json!({"findings": "f", "gaps": ["one"], "score": {"of": 3}});
    assert_eq!(repaired(findings(), &output), Ok(fitting));
    let listed = json!({"findings": "f", "gaps": "[\"a\", \"b\"]"});
    assert_eq!(repaired(findings(), &listed), Ok(json!({"findings": "f", "gaps": ["a", "b"]})));
}

#[test]
fn members_of_an_output_in_text_are_repaired_too() {
    let text = json!("```json\n{\"findings\": \"f\", \"gaps\": \"one\"}\n```");
    assert_eq!(repaired(findings(), &text), Ok(json!({"findings": "f", "gaps": ["one"]})));
}

#[test]
fn an_output_that_cannot_be_repaired_keeps_its_violations() {
    let violations = repaired(findings(), &json!({"findings": 1, "gaps": []})).unwrap_err();
    assert_eq!(violations, ["at /findings: 1 is not of type \"string\""]);
    let violations = repaired(findings(), &json!("just text")).unwrap_err();
    assert_eq!(violations, ["\"just text\" is not of type \"object\""]);
    assert!(repaired(findings(), &json!("```json\n{broken\n```")).is_err());
}

#[test]
fn a_bullet_list_for_an_array_is_one_element_and_not_split_by_guessing() {
    let output = json!({"findings": "f", "gaps": "- a\n- b"});
    assert_eq!(repaired(findings(), &output), Ok(json!({"findings": "f", "gaps": ["- a\n- b"]})));
}

#[test]
fn outputs_that_are_not_objects_are_unwrapped() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(repaired(list.clone(), &json!({"output": [1]})), Ok(json!([1])));
    assert_eq!(repaired(list.clone(), &json!({"output": "[1, 2]"})), Ok(json!([1, 2])));
    assert_eq!(repaired(list, &json!({"output": 1})), Ok(json!([1])));
    assert_eq!(repaired(json!({}), &json!({"output": 5})), Ok(json!(5)));
    assert_eq!(repaired(json!({"type": "string"}), &json!({"output": "x"})), Ok(json!("x")));
}

#[test]
fn a_member_named_like_the_wrapper_stays() {
    let object = json!({"type": "object", "properties": {"output": {"type": "integer"}}});
    assert_eq!(repaired(object.clone(), &json!({"output": 1})), Ok(json!({"output": 1})));
    let either = json!({"oneOf": [object, {"type": "boolean"}]});
    let wrapped = json!({"output": {"output": 1}});
    assert_eq!(repaired(either.clone(), &wrapped), Ok(json!({"output": 1})), "only one layer");
    assert_eq!(repaired(either, &json!({"output": 1})), Ok(json!({"output": 1})), "not wrapped");
}

#[test]
fn repairing_twice_is_repairing_once() {
    let outputs = [json!("```\n{\"findings\": \"f\", \"gaps\": \"a\"}\n```"), json!({"gaps": 1})];
    for output in outputs {
        if let Ok(once) = repaired(findings(), &output) {
            assert_eq!(repaired(findings(), &once), Ok(once));
        }
    }
}
