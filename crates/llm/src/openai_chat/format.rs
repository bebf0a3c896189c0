//! The response format that requests a JSON schema.

use serde_json::Value;

use super::profile::OutputFormat;
use crate::json_writer::{Object, write_json};
use crate::strict::{Subset, strict};

/// Writes the response format that requests `schema`.
pub(super) fn encode(schema: &Value, format: OutputFormat, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    if format == OutputFormat::JsonObject {
        object.member("type", "json_object");
        object.member("schema", schema);
        return object.end();
    }
    object.member("type", "json_schema");
    let narrowed = strict(schema, Subset::OpenAi);
    let mut inner = Object::begin(object.value("json_schema"));
    inner.member("name", "output");
    write_json(inner.value("schema"), narrowed.as_ref().unwrap_or(schema));
    inner.member("strict", &narrowed.is_some());
    inner.end();
    object.end();
}
