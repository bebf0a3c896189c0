//! Schemas of types, and what is wrong with values.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::json;

use super::Schema;
use crate::error::ErrorCode;

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Query {
    /// What to look for.
    query: String,
    limit: Option<u8>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[test]
fn the_schema_of_a_type_has_its_documentation_and_no_noise() {
    let schema = Schema::of::<Query>().unwrap();
    assert_eq!(schema.value()["type"], "object");
    assert_eq!(schema.value()["properties"]["query"]["description"], "What to look for.");
    assert_eq!(schema.value()["required"], json!(["query"]));
    assert_eq!(schema.value().get("title"), None);
    assert_eq!(schema.value().get("$schema"), None);
    assert_eq!(schema.json().to_value(), *schema.value());
}

#[test]
fn violations_name_their_place() {
    let schema = Schema::of::<Query>().unwrap();
    assert_eq!(schema.validate(&json!({"query": "x", "limit": null})), Ok(()));
    let violations = schema.validate(&json!({"query": 1})).unwrap_err();
    assert_eq!(violations, [r#"at /query: 1 is not of type "string""#]);
    let violations = schema.validate(&json!({})).unwrap_err();
    assert_eq!(violations, [r#""query" is a required property"#]);
    let deep = Schema::from_value(json!({"items": {"properties": {"a": {"minimum": 5}}}})).unwrap();
    let violations = deep.validate(&json!([{"a": 9}, {"a": 4}])).unwrap_err();
    assert_eq!(violations, ["at /1/a: 4 is less than the minimum of 5"]);
}

#[test]
fn at_most_ten_violations_are_told() {
    let schema = Schema::from_value(json!({"items": {"type": "integer"}})).unwrap();
    let many = json!(vec!["x"; 50]);
    assert_eq!(schema.validate(&many).unwrap_err().len(), 10);
}

#[test]
fn what_is_not_a_schema_is_refused() {
    for value in [json!({"type": 1}), json!({"type": "strnig"}), json!(7)] {
        let error = Schema::from_value(value.clone()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ToolInvalid, "{value}");
        assert!(error.message().starts_with("not a usable JSON Schema"), "{error}");
    }
}

#[test]
fn a_schema_that_refers_outside_of_itself_is_refused() {
    for reference in ["https://example.com/s.json", "file:///etc/passwd", "#/$defs/Missing"] {
        let error = Schema::from_value(json!({"$ref": reference})).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ToolInvalid, "{reference}");
    }
}

#[test]
fn true_accepts_everything() {
    let schema = Schema::of::<serde_json::Value>().unwrap();
    for value in [json!(null), json!([1]), json!({"a": 1})] {
        assert_eq!(schema.validate(&value), Ok(()));
    }
}
