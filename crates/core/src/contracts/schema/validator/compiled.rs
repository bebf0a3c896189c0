//! The validator of builds with the feature `json-schema`.

use jsonschema::ValidationError;
use serde_json::Value;

use crate::text::excerpt_of;

mod outline;

/// The maximum size of a quoted value in a violation, in bytes.
const MAX_INSTANCE: usize = 200;

/// The maximum size of a violation, in bytes.
const MAX_VIOLATION: usize = 500;

/// A compiled schema.
pub(crate) struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema. The error says why the value is not a schema.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Lists the violations of a value, each with its place and the value there.
    pub(crate) fn violations<'a>(&'a self, value: &'a Value) -> impl Iterator<Item = String> + 'a {
        self.0.iter_errors(value).map(|error| describe(&error))
    }

    /// Lists the violations of a value without any content of the value. `schema` is the schema of
    /// this validator.
    pub(crate) fn outlines<'a>(
        &'a self,
        schema: &'a Value,
        value: &'a Value,
    ) -> impl Iterator<Item = String> + 'a {
        self.0.iter_errors(value).map(|error| outline::of(&error, schema))
    }
}

fn describe(error: &ValidationError<'_>) -> String {
    let place = excerpt_of(error.instance_path(), MAX_INSTANCE);
    let at = if place.is_empty() { "" } else { "at " };
    let to = if place.is_empty() { "" } else { ": " };
    let instance = excerpt_of(error.instance(), MAX_INSTANCE);
    if instance.ends_with('…') {
        let masked = error.masked_with(instance);
        excerpt_of(format_args!("{at}{place}{to}{masked}"), MAX_VIOLATION)
    } else {
        excerpt_of(format_args!("{at}{place}{to}{error}"), MAX_VIOLATION)
    }
}
