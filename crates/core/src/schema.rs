//! JSON Schemas: made from types, sent to models, checked against what models write.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde_json::Value;

use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::wire::WireCell;

/// The most violations that a model is told at once.
const MAX_VIOLATIONS: usize = 10;

/// A JSON Schema, compiled. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    text: Json,
    validator: jsonschema::Validator,
    wire: WireCell,
}

impl Schema {
    /// The schema of a type, as serde reads it.
    ///
    /// # Errors
    /// [`ErrorCode::ToolInvalid`] if the type's schema cannot be compiled.
    pub fn of<T: JsonSchema>() -> Result<Self> {
        let mut value = schemars::schema_for!(T).to_value();
        if let Value::Object(members) = &mut value {
            // Noise to a model, and some strict providers refuse it.
            members.remove("$schema");
            members.remove("title");
        }
        Self::from_value(value)
    }

    /// A schema from its JSON.
    ///
    /// # Errors
    /// [`ErrorCode::ToolInvalid`] if it is not a schema, or refers to something outside of itself.
    pub fn from_value(value: Value) -> Result<Self> {
        let validator = jsonschema::validator_for(&value).map_err(|error| {
            Error::new(ErrorCode::ToolInvalid, format!("not a usable JSON Schema: {error}"))
        })?;
        let text = Json::from(value.clone());
        Ok(Self(Arc::new(Inner { value, text, validator, wire: WireCell::default() })))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// What is wrong with it, one sentence each, at most ten: for a model to read.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<String>> {
        if self.0.validator.is_valid(value) {
            return Ok(());
        }
        let violations = self.0.validator.iter_errors(value).take(MAX_VIOLATIONS);
        Err(violations.map(|error| describe(&error)).collect())
    }

    /// The schema as a tree.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The schema's bytes in `encoding`, made by `encode` the first time: how a provider asks for a
    /// native structured output.
    pub fn encoded(
        &self,
        encoding: &'static str,
        encode: impl Fn(&Value, &mut Vec<u8>),
    ) -> Cow<'_, [u8]> {
        self.0.wire.get(encoding, |bytes| encode(&self.0.value, bytes))
    }

    /// The schema as text.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.0.text
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    if place.is_empty() { error.to_string() } else { format!("at {place}: {error}") }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.0.text.text())
    }
}

#[cfg(test)]
mod tests;
