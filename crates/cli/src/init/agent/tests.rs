//! Tests that the template matches the schema of agent files.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// The template with every key enabled.
fn everything() -> Value {
    let text = TEMPLATE.replace("{{name}}", "all");
    let lines = text.lines().map(|line| {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let key = bare.split(" = ").next().unwrap_or_default();
        let is_key = bare.contains(" = ") && key.chars().all(|c| c.is_alphanumeric() || c == '_');
        let is_table = bare.starts_with('[') && bare.ends_with(']');
        if is_key || is_table { bare } else { line }
    });
    let table: toml::Table = lines.collect::<Vec<_>>().join("\n").parse().unwrap();
    serde_json::to_value(table).unwrap()
}

/// Collects the path of every key below a value, except the keys of the user's output schema.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{key}");
        if path != "/output/schema" {
            keys(value, &path, found);
        }
        found.insert(path);
    }
}

/// Collects the path of every key of the schema, with its default if it has one.
fn known(root: &Value, schema: &Value, path: &str, found: &mut Vec<(String, Option<Value>)>) {
    let name = schema["$ref"].as_str().or_else(|| schema["anyOf"][0]["$ref"].as_str());
    let target = name.and_then(|name| root.pointer(name.trim_start_matches('#'))).unwrap_or(schema);
    for (key, schema) in target["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{key}");
        if path != "/output/schema" {
            known(root, schema, &path, found);
        }
        found.push((path, schema.get("default").cloned()));
    }
}

#[test]
fn every_key_is_explained_and_no_other_one() {
    let schema = agent_file::schema();
    let (mut explained, mut defined) = (BTreeSet::new(), Vec::new());
    keys(&everything(), "", &mut explained);
    known(&schema, &schema, "", &mut defined);
    let defined: BTreeSet<String> = defined.into_iter().map(|(path, _)| path).collect();
    assert!(defined.len() > 30, "{defined:?}");
    assert_eq!(explained, defined);
}

#[test]
fn disabled_values_are_the_defaults() {
    let schema = agent_file::schema();
    let everything = everything();
    let mut defined = Vec::new();
    known(&schema, &schema, "", &mut defined);
    let mut compared = 0;
    for (path, default) in defined {
        let Some(default) = default.filter(|value| !value.is_object() && !value.is_null()) else {
            continue;
        };
        if ["/description", "/settings/stop_sequences"].contains(&&*path) {
            continue;
        }
        assert_eq!(everything.pointer(&path), Some(&default), "{path}");
        compared += 1;
    }
    assert!(compared >= 8, "only {compared} keys have a default");
}

#[test]
fn the_template_fits_the_schema() {
    let validator = jsonschema::validator_for(&agent_file::schema()).unwrap();
    let table: toml::Table = TEMPLATE.replace("{{name}}", "an-agent").parse().unwrap();
    let errors: Vec<_> =
        validator.iter_errors(&json!(table)).map(|error| error.to_string()).collect();
    assert_eq!(errors, [] as [String; 0]);
}
