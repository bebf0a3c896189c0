//! Tests of schemas that are rejected before they are compiled.

use serde_json::{Value, json};

use super::check;

#[track_caller]
fn refused(schema: &Value, because: &str) {
    let problem = check(schema).unwrap_err();
    assert!(problem.contains(because), "{problem}");
}

#[test]
fn reference_cycles_are_rejected() {
    let circle = "forms a cycle";
    refused(&json!({ "$ref": "#" }), circle);
    refused(&json!({ "allOf": [{ "$ref": "#" }] }), circle);
    refused(&json!({ "dependentSchemas": { "const": { "$ref": "#" } } }), circle);
    refused(&json!({ "dependencies": { "const": { "$ref": "#" } } }), circle);
    refused(&json!({ "properties": { "a": { "not": { "$ref": "#/properties/a" } } } }), circle);
    let defs = json!({
        "a": { "$ref": "#/$defs/b" },
        "b": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/a" }] },
    });
    refused(&json!({ "type": "object", "$defs": defs }), circle);
}

#[test]
fn a_recursive_tree_is_accepted() {
    let tree = json!({
        "type": "object",
        "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
    });
    assert_eq!(check(&tree), Ok(true));
}

/// Returns schemas each of which refers to the next one twice.
fn pairs(levels: usize, pair: impl Fn(Value) -> Value) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/level{}", level + 1) });
        defs.insert(format!("level{level}"), pair(next));
    }
    defs.insert(format!("level{levels}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/level0", "$defs": defs })
}

#[test]
fn a_schema_may_be_referenced_often() {
    let any = |next: Value| json!({ "anyOf": [next.clone(), next] });
    assert_eq!(check(&pairs(8, any)), Ok(false));
    let nodes: Vec<Value> = (0..1000).map(|_| json!({ "$ref": "#/$defs/a" })).collect();
    assert_eq!(check(&json!({ "anyOf": nodes, "$defs": { "a": { "type": "null" } } })), Ok(false));
}

#[test]
fn exponential_references_are_rejected() {
    let multiply = "gives more than 10000 schemas";
    // Expanded, this would have 2^30 leaves.
    refused(&pairs(30, |next| json!({ "anyOf": [next.clone(), next] })), multiply);
    refused(&pairs(30, |next| json!({ "allOf": [next.clone()], "if": next })), multiply);
    // A value of the same depth requires as many checks.
    let nested = |next: Value| json!({ "properties": { "enum": next } });
    let both = |next: Value| json!({ "anyOf": [nested(next.clone()), nested(next)] });
    refused(&pairs(30, both), multiply);
    refused(&pairs(200, |next| json!({ "items": next })), "through more than 256 levels");
}

#[test]
fn other_kinds_of_references_are_rejected() {
    let anchors = json!({ "items": { "$ref": "#a" }, "$defs": { "a": { "$anchor": "a" } } });
    refused(&anchors, "is not a path such as");
    refused(&json!({ "$defs": { "a": { "$anchor": "a" } } }), "`$anchor` is not supported");
    refused(&json!({ "items": { "$ref": "#/%24defs/a" } }), "is not a path such as");
    refused(&json!({ "items": { "$dynamicRef": "#" } }), "`$dynamicRef` is not supported");
    let id =
        json!({ "$id": "https://example.com/a", "properties": { "id": { "type": "string" } } });
    assert_eq!(check(&id), Ok(false));
}

#[test]
fn nothing_is_fetched() {
    let out = "points outside of it, and nothing is fetched";
    refused(&json!({ "$ref": "https://example.com/schema.json" }), out);
    refused(&json!({ "properties": { "a": { "$ref": "file:///etc/passwd" } } }), out);
    refused(&json!({ "items": { "$ref": "other.json#/a" } }), out);
}

#[test]
fn depth_is_bounded() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..70 {
        deep = json!({ "items": deep });
    }
    refused(&deep, "nested more than 64 levels deep");
    let mut defs = serde_json::Map::new();
    for level in 0..200 {
        let next = json!({ "$ref": format!("#/$defs/{}", level + 1) });
        defs.insert(level.to_string(), next);
    }
    refused(&json!({ "$defs": defs }), "more than 64 references in a row");
}

#[test]
fn data_that_looks_like_a_reference_is_ignored() {
    let data = json!({ "const": { "$ref": "https://example.com" }, "examples": [{ "$ref": "#" }] });
    assert_eq!(check(&data), Ok(false));
    assert_eq!(check(&json!(true)), Ok(false));
}
