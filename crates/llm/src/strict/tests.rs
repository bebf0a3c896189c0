//! Schemas that can and cannot be converted to the strict subset.

use serde_json::{Value, json};

use super::{Subset, strict};

#[track_caller]
fn check(schema: &Value, expected: &Value) {
    assert_eq!(strict(schema, Subset::OpenAi).as_ref(), Some(expected));
    // A strict schema is not changed.
    assert_eq!(
        strict(expected, Subset::OpenAi).as_ref(),
        Some(expected),
        "after the second conversion"
    );
}

#[track_caller]
fn check_refused(property: &Value) {
    let schema = json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
    assert_eq!(strict(&schema, Subset::OpenAi), None, "{property}");
}

#[test]
fn objects_are_closed_and_nullable_properties_required() {
    check(
        &json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where"},
                "unit": {"type": ["string", "null"], "default": null},
            },
            "required": ["city"],
        }),
        &json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where"},
                "unit": {"type": ["string", "null"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn an_object_without_properties_is_closed_too() {
    check(
        &json!({"type": "object"}),
        &json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
    );
}

#[test]
fn an_optional_property_that_is_not_nullable_cannot_be_converted() {
    let schema = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
    assert_eq!(strict(&schema, Subset::OpenAi), None);
}

#[test]
fn unknown_formats_and_lengths_are_dropped() {
    check(
        &json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "format": "uint32", "minimum": 0},
                "t": {"type": "string", "format": "date-time", "maxLength": 40},
            },
            "required": ["n", "t"],
        }),
        &json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 0},
                "t": {"type": "string", "format": "date-time"},
            },
            "required": ["n", "t"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn nested_schemas_and_references_are_converted() {
    check(
        &json!({
            "type": "object",
            "properties": {
                "list": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                "maybe": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]},
                "kind": {"oneOf": [{"const": "a"}, {"const": "b"}]},
            },
            "required": ["list", "kind"],
            "$defs": {
                "Item": {
                    "title": "Item",
                    "type": "object",
                    "properties": {"next": {"$ref": "#/$defs/Item", "description": "The rest"}},
                    "required": ["next"],
                },
            },
        }),
        &json!({
            "type": "object",
            "properties": {
                "list": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                "maybe": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]},
                "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
            },
            "$defs": {
                "Item": {
                    "type": "object",
                    "properties": {"next": {"$ref": "#/$defs/Item"}},
                    "required": ["next"],
                    "additionalProperties": false,
                },
            },
            "required": ["list", "maybe", "kind"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn schemas_without_a_strict_form_are_rejected() {
    check_refused(&json!(true));
    check_refused(&json!({}));
    check_refused(&json!({"description": "anything"}));
    check_refused(&json!({"type": "object", "additionalProperties": {"type": "string"}}));
    check_refused(&json!({"type": "object", "additionalProperties": true}));
    check_refused(&json!({"type": "string", "not": {"const": "x"}}));
    check_refused(&json!({"allOf": [{"type": "string"}]}));
    check_refused(&json!({"type": "array"}));
    check_refused(&json!({"type": "array", "prefixItems": [{"type": "string"}]}));
    check_refused(&json!({"$ref": "#/$defs/Missing"}));
    check_refused(&json!({"$ref": "https://example.com/schema"}));
}

#[test]
fn the_root_must_be_one_object() {
    assert_eq!(strict(&json!({"type": "string"}), Subset::OpenAi), None);
    assert_eq!(
        strict(&json!({"type": "object", "anyOf": [{"type": "object"}]}), Subset::OpenAi),
        None
    );
    assert_eq!(strict(&json!({"anyOf": [{"type": "object"}]}), Subset::OpenAi), None);
}

#[test]
fn cyclic_references_do_not_hang() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/A"}},
    });
    assert_eq!(strict(&schema, Subset::OpenAi), None);
}

#[test]
fn anthropics_subset_has_optional_properties_and_no_limits() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1, "pattern": "^[A-Z]", "format": "uri"},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 9},
            "many": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 2},
        },
        "required": ["city"],
        "$defs": {"tag": {"type": "string"}},
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "format": "uri"},
            "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "many": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        },
        "required": ["city"],
        "additionalProperties": false,
        "$defs": {"tag": {"type": "string"}},
    });
    assert_eq!(strict(&schema, Subset::Anthropic), Some(expected.clone()));
    assert_eq!(strict(&expected, Subset::Anthropic), Some(expected));
}

#[test]
fn anthropics_subset_has_no_recursive_schemas() {
    let tree = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["children"],
        }},
        "required": ["root"],
    });
    assert_eq!(strict(&tree, Subset::Anthropic), None);
    assert!(strict(&tree, Subset::OpenAi).is_some());
}
