//! Tests of type schemas and violations.

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
fn a_type_schema_has_descriptions_and_no_schema_uri() {
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
fn at_most_ten_violations_are_reported() {
    let schema = Schema::from_value(json!({"items": {"type": "integer"}})).unwrap();
    let many = json!(vec!["x"; 50]);
    assert_eq!(schema.validate(&many).unwrap_err().len(), 10);
}

#[test]
fn an_invalid_schema_is_rejected() {
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

/// A recursive schema of nested lists with two alternatives at each level.
fn lists_in_two_ways() -> Schema {
    let way = json!({ "type": "array", "items": { "$ref": "#/$defs/a" } });
    let schema = json!({ "$defs": { "a": { "anyOf": [way, way] } }, "$ref": "#/$defs/a" });
    Schema::from_value(schema).unwrap()
}

fn lists(levels: usize) -> serde_json::Value {
    (0..levels).fold(json!("x"), |inner, _| json!([inner]))
}

#[test]
fn validation_against_a_recursive_schema_is_bounded() {
    let schema = lists_in_two_ways();
    let violations = |levels| schema.validate(&lists(levels)).unwrap_err();
    // Without the limit this would take 2^100 checks.
    assert!(violations(100)[0].contains("make it smaller and flatter"), "{:?}", violations(100));
    assert!(violations(20)[0].contains("does not fit"), "{:?}", violations(20));
    assert!(
        violations(3)[0].contains("is not valid under any of the schemas"),
        "{:?}",
        violations(3)
    );
}

#[test]
fn a_recursive_type_may_be_deep() {
    #[derive(JsonSchema)]
    #[serde(tag = "op", rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Term {
        Number { value: f64 },
        Add { left: Box<Self>, right: Box<Self> },
        Multiply { left: Box<Self>, right: Box<Self> },
    }
    fn term(levels: usize) -> serde_json::Value {
        match levels {
            0 => json!({ "op": "number", "value": 1.5 }),
            _ => json!({ "op": "add", "left": term(levels - 1), "right": term(levels - 1) }),
        }
    }
    let schema = Schema::of::<Term>().unwrap();
    assert_eq!(schema.validate(&term(8)), Ok(()));
    let chain = (0..14)
        .fold(term(0), |inner, _| json!({ "op": "multiply", "left": inner, "right": term(0) }));
    assert_eq!(schema.validate(&chain), Ok(()));
    let mut wrong = term(3);
    wrong["left"]["right"]["op"] = "divide".into();
    assert_ne!(schema.validate(&wrong), Ok(()));
}

#[test]
fn a_type_whose_schema_panics_has_none() {
    struct Bad;
    impl JsonSchema for Bad {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Bad".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            panic!("on purpose")
        }
    }
    let error = Schema::of::<Bad>().unwrap_err();
    assert_eq!(error.code(), ErrorCode::ToolInvalid);
    assert!(error.message().ends_with("panicked"), "{error}");
}

#[test]
fn violations_of_a_large_value_are_bounded() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let schema = Schema::from_value(schema).unwrap();
    let large = "x".repeat(100_000);
    let members = (0..20).map(|index| (format!("{index}{large}"), json!([large]))).collect();
    let violations = schema.validate(&serde_json::Value::Object(members)).unwrap_err();
    assert!(!violations.is_empty());
    let total: usize = violations.iter().map(String::len).sum();
    assert!(total <= crate::text::MAX_QUOTED + 3, "{total} bytes");
    let one = schema.validate(&json!({"a": large})).unwrap_err();
    assert!(
        one[0].starts_with("at /a: \"xxx") && one[0].ends_with("x… is not of type \"integer\"")
    );
}

#[test]
fn the_outline_of_a_violation_has_the_place_and_no_content() {
    let schema = json!({
        "type": "object",
        "required": ["total"],
        "properties": {
            "total": {"type": ["integer", "null"]},
            "kind": {"enum": ["a", "b"]},
            "by": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        },
        "additionalProperties": false,
        "$defs": {"item": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    });
    let schema = Schema::from_value(schema).unwrap();
    assert_eq!(schema.outline(&json!({"total": 1})), None);
    for (value, expected) in [
        (json!({}), "the member \"total\" is missing"),
        (json!("secret"), "a string of 6 bytes does not satisfy `type`: \"object\""),
        (
            json!({"total": "secret"}),
            "at /total: a string of 6 bytes does not satisfy `type`: [\"integer\",\"null\"]",
        ),
        (
            json!({"total": 1, "kind": "secret"}),
            "at /kind: a string of 6 bytes does not satisfy `enum`",
        ),
        (
            json!({"total": 1, "by": {"secret": "secret"}}),
            "at /by/*: a string of 6 bytes does not satisfy `maxLength`",
        ),
        (
            json!({"total": 1, "list": [{"id": "secret"}]}),
            "at /list/0/id: a string of 6 bytes does not satisfy `type`: \"integer\"",
        ),
        (
            json!({"total": 1, "secret": 1}),
            "an object of 2 does not satisfy `additionalProperties`",
        ),
    ] {
        assert_eq!(schema.outline(&value).unwrap(), expected);
    }
}
