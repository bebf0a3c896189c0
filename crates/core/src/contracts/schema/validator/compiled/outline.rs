//! Describes a schema violation without any content of the value.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use super::MAX_VIOLATION;
use crate::contracts::schema::check::parts;
use crate::json::misfit::kind;
use crate::text::excerpt_of;

/// Describes the place of the violation in the value, the kind of the value there, and the failed
/// keyword of `schema`.
pub(super) fn of(error: &ValidationError<'_>, schema: &Value) -> String {
    let mut text = place(error, schema);
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let _infallible = write!(text, "the member {property} is missing");
        }
        failed => {
            let found = kind(error.instance());
            let _infallible = write!(text, "{found} does not satisfy `{}`", failed.keyword());
            if let ValidationErrorKind::Type { .. } = failed
                && let Some(expected) = schema.pointer(error.schema_path().as_str())
            {
                let _infallible = write!(text, ": {expected}");
            }
        }
    }
    excerpt_of(text, MAX_VIOLATION)
}

/// Returns the path of the value, using only names that the schema contains.
fn place(error: &ValidationError<'_>, schema: &Value) -> String {
    let mut known = BTreeSet::new();
    names(schema, &mut known);
    let mut place = String::new();
    for segment in error.instance_path() {
        let _infallible = match segment {
            LocationSegment::Index(index) => write!(place, "/{index}"),
            LocationSegment::Property(name) if known.contains(&*name) => write!(place, "/{name}"),
            LocationSegment::Property(_) => write!(place, "/*"),
        };
    }
    if place.is_empty() { place } else { format!("at {place}: ") }
}

/// Collects the names of all members that the schema describes.
fn names<'a>(schema: &'a Value, known: &mut BTreeSet<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| names(item, known)),
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                known.extend(properties.keys().map(String::as_str));
            }
            parts(members).for_each(|(_, part)| names(part, known));
        }
        _ => {}
    }
}
