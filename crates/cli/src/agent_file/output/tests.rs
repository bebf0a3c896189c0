//! Which schemas are refused before anything is built of them.

use serde_json::{Value, json};

use super::check;

#[track_caller]
fn refused(schema: &Value, because: &str) {
    let problem = check(schema).unwrap_err();
    assert!(problem.contains(because), "{problem}");
}

#[test]
fn references_that_go_in_a_circle_are_refused() {
    let circle = "leads in a circle";
    refused(&json!({ "$ref": "#" }), circle);
    refused(&json!({ "allOf": [{ "$ref": "#" }] }), circle);
    refused(&json!({ "properties": { "a": { "not": { "$ref": "#/properties/a" } } } }), circle);
    let defs = json!({
        "a": { "$ref": "#/$defs/b" },
        "b": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/a" }] },
    });
    refused(&json!({ "type": "object", "$defs": defs }), circle);
}

#[test]
fn a_tree_may_hold_trees() {
    let tree = json!({
        "type": "object",
        "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
    });
    assert_eq!(check(&tree), Ok(()));
}

#[test]
fn one_schema_may_be_referred_to_often() {
    // As a tree this would have 2^60 leaves.
    let mut defs = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/level{}", level + 1) });
        defs.insert(format!("level{level}"), json!({ "allOf": [next.clone(), next] }));
    }
    defs.insert("level30".to_owned(), json!({ "type": "string" }));
    assert_eq!(check(&json!({ "type": "object", "$defs": defs })), Ok(()));
}

#[test]
fn nothing_is_fetched() {
    let out = "leads out of it, and nothing is fetched";
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
fn what_only_looks_like_a_reference_is_none() {
    let data = json!({ "const": { "$ref": "https://example.com" }, "examples": [{ "$ref": "#" }] });
    assert_eq!(check(&data), Ok(()));
    refused(&json!(true), "must be a table");
}
