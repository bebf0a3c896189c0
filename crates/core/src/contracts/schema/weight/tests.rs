//! Tests of the weights of values for recursive schemas.

use serde_json::{Value, json};

use super::{ENDLESS, weigh};

/// Returns a string inside of nested lists.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |inner, _| json!([inner]))
}

#[test]
fn a_single_path_weighs_as_much_as_the_value() {
    let list = json!({ "type": "array", "items": { "$ref": "#" } });
    let weights = [1, 2, 50].map(|levels| weigh(&list, &nested(levels)));
    assert_eq!(weights, [3, 5, 101]);
}

#[test]
fn two_paths_double_the_weight_at_each_level() {
    let way = json!({ "items": { "$ref": "#" } });
    for two in [
        json!({ "anyOf": [way, way] }),
        json!({ "oneOf": [way, way] }),
        json!({ "allOf": [way], "items": { "$ref": "#" } }),
        json!({ "if": way, "then": way }),
        json!({ "not": way, "contains": { "$ref": "#" } }),
        json!({ "items": { "$ref": "#" }, "unevaluatedItems": false }),
    ] {
        assert!(weigh(&two, &nested(20)) > 1 << 20, "{two}");
        assert!(weigh(&two, &nested(64)) == ENDLESS || two.get("unevaluatedItems").is_some());
    }
}

#[test]
fn members_are_paths_into_a_value_too() {
    let deep = (0..20).fold(json!("x"), |inner, _| json!({ "a": inner }));
    let to = json!({ "$ref": "#" });
    for two in [
        json!({ "properties": { "a": to }, "patternProperties": { "a": to } }),
        json!({ "additionalProperties": to, "dependentSchemas": { "a": { "properties": { "a": to } } } }),
        json!({ "unevaluatedProperties": to }),
        json!({ "properties": { "a": to }, "dependencies": { "a": { "properties": { "a": to } } } }),
    ] {
        assert!(weigh(&two, &deep) > 1 << 20, "{two}");
    }
    assert!(weigh(&json!({ "properties": { "b": to } }), &deep) < 5);
}

#[test]
fn depth_and_width_are_bounded() {
    let list = json!({ "items": { "$ref": "#" } });
    assert_eq!(weigh(&list, &nested(600)), ENDLESS);
    let wide = json!(vec![json!([1, 2, 3]); 100_000]);
    assert_eq!(weigh(&list, &wide), ENDLESS);
}
