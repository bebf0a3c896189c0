//! The response format that asks for a JSON schema, written once per schema.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::profile::OutputFormat;
use super::request::{Object, write_json};
use crate::strict::strict;

/// More schemas than agents usually have; past that the oldest is written anew.
const MOST_FORMATS: usize = 32;

/// What was written for the schemas seen so far.
#[derive(Debug, Default)]
pub(super) struct FormatCache(Mutex<Vec<(Value, Arc<[u8]>)>>);

impl FormatCache {
    /// The bytes of `response_format` for a schema.
    pub(super) fn bytes(&self, schema: &Value, format: OutputFormat) -> Arc<[u8]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = known.iter().find(|it| it.0 == *schema) {
            return Arc::clone(bytes);
        }
        let mut bytes = Vec::new();
        encode(schema, format, &mut bytes);
        let bytes: Arc<[u8]> = bytes.into();
        if known.len() >= MOST_FORMATS {
            known.remove(0);
        }
        known.push((schema.clone(), Arc::clone(&bytes)));
        bytes
    }
}

fn encode(schema: &Value, format: OutputFormat, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    if format == OutputFormat::JsonObject {
        object.member("type", "json_object");
        object.member("schema", schema);
        return object.end();
    }
    object.member("type", "json_schema");
    let narrowed = strict(schema);
    let mut inner = Object::begin(object.value("json_schema"));
    inner.member("name", "output");
    write_json(inner.value("schema"), narrowed.as_ref().unwrap_or(schema));
    inner.member("strict", &narrowed.is_some());
    inner.end();
    object.end();
}
