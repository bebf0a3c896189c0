//! The JSON Schema of agent files, for editors and for the reader itself.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Map, Value};

use super::form::Form;

/// The schema. It has no references, so that a place in it is a place in an agent file.
pub(crate) fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Form>();
    RecursiveTransform(simplify).transform(&mut schema);
    schema.to_value()
}

/// TOML has no null, and how large numbers may be is told by their ranges.
fn simplify(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    members.remove("format");
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if members.get("additionalProperties") == Some(&Value::Bool(false)) {
        // A table without any key says so, like every other one.
        members.entry("properties").or_insert_with(|| Map::new().into());
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|it| it != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get("anyOf")
        && let [Value::Object(choice), null] = choices.as_slice()
        && null.get("type").is_some_and(|it| it == "null")
    {
        let choice: Map<String, Value> = choice.clone();
        members.remove("anyOf");
        for (key, value) in choice {
            members.entry(key).or_insert(value);
        }
    }
}
