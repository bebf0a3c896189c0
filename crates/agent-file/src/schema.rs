//! The JSON Schema of agent files, used by editors and by the parser.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Map, Value};

use crate::config::AgentConfig;

/// Generates the schema. It has no references, so that a path in it corresponds to a path in an
/// agent file.
#[must_use]
pub fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<AgentConfig>();
    RecursiveTransform(simplify).transform(&mut schema);
    schema.to_value()
}

/// Removes nulls, which TOML does not have, and number formats, which the ranges already express.
fn simplify(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    members.remove("format");
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if members.get("additionalProperties") == Some(&Value::Bool(false)) {
        // A table without keys has `properties` too, like every other table.
        members.entry("properties").or_insert_with(|| Map::new().into());
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get("anyOf")
        && let [Value::Object(choice), null] = choices.as_slice()
        && null.get("type").is_some_and(|name| name == "null")
    {
        let choice: Map<String, Value> = choice.clone();
        members.remove("anyOf");
        for (key, value) in choice {
            members.entry(key).or_insert(value);
        }
    }
}
