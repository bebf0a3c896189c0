//! The published schema is current, the samples match it, and the parser rejects everything that it
//! rejects.

use std::path::Path;

use expect_test::expect_file;
use serde_json::{Value, json};

use super::super::schema::schema;
use super::{AgentFile, EVERYTHING, Fixture, built};

fn fits(document: &Value) -> bool {
    jsonschema::is_valid(&schema(), document)
}

fn as_json(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

#[test]
fn the_published_schema_is_current() {
    let text = format!("{:#}\n", schema());
    expect_file!["../../../../docs/agent-file.schema.json"].assert_eq(&text);
}

#[test]
fn it_is_a_schema_and_has_no_references() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    assert!(!schema.to_string().contains("$ref"), "{schema}");
}

#[test]
fn everything_fits() {
    assert!(fits(&as_json(EVERYTHING)));
}

/// Collects the path of every key of the schema.
fn keys(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        keys(schema, &path, found);
        found.push(path);
    }
}

#[test]
fn the_parser_rejects_what_the_schema_rejects() {
    let everything = as_json(EVERYTHING);
    let mut paths = Vec::new();
    keys(&schema(), "", &mut paths);
    assert!(paths.len() > 35, "{paths:?}");
    let wrong =
        [json!(true), json!(-1), json!(1.5), json!(""), json!("a b"), json!([1]), json!({})];
    let (mut refused, mut tried) = (0, 0);
    for path in &paths {
        let Some((parent, key)) = path.rsplit_once('/') else { continue };
        // Wrong values, a misspelled key, and a missing key.
        let mut variants: Vec<Value> = Vec::new();
        for value in &wrong {
            let mut variant = everything.clone();
            if let Some(Value::Object(table)) = variant.pointer_mut(parent) {
                table.insert(key.to_owned(), value.clone());
                variants.push(variant);
            }
        }
        let mut variant = everything.clone();
        if let Some(Value::Object(table)) = variant.pointer_mut(parent) {
            table.remove(key);
            variants.push(variant.clone());
            let table = variant.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
            table.insert(format!("{key}x"), json!(1));
            variants.push(variant);
        }
        for variant in variants {
            tried += 1;
            let text = toml::to_string(&variant).unwrap();
            let agent = Fixture::new(&text).agent();
            if !fits(&variant) {
                refused += 1;
                assert!(agent.is_err(), "{text}");
            }
        }
    }
    assert!(tried > 300 && refused > 200, "{refused} of {tried}");
}

/// The agent files in the folder of examples.
fn samples() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

#[test]
fn the_samples_can_be_built() {
    let samples = samples();
    assert!(samples.len() >= 3, "{samples:?}");
    for path in samples {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(fits(&as_json(&text)), "{}", path.display());
        built(&AgentFile::read(&path).unwrap(), "mine:small", None).unwrap();
    }
}

/// The TOML blocks of the documentation page on agent files.
fn blocks() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/agent-file.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_samples_of_the_guide_can_be_built() {
    let blocks = blocks();
    assert!(blocks.len() >= 2, "{blocks:?}");
    for block in blocks {
        let fixture = Fixture::new(&block);
        std::fs::write(fixture.path("prompt.md"), "Be kind.").unwrap();
        std::fs::write(fixture.path("answer.schema.json"), "{ \"type\": \"object\" }").unwrap();
        fixture.agent().unwrap_or_else(|problem| panic!("{block}: {problem}"));
        assert!(fits(&as_json(&block)), "{block}");
    }
}

#[test]
fn the_guide_names_every_key() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/agent-file.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut paths = Vec::new();
    keys(&schema(), "", &mut paths);
    for path in paths {
        let key = path.rsplit('/').next().unwrap();
        assert!(page.contains(&format!("`{key}`")) || page.contains(key), "{path}");
    }
}
