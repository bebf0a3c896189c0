//! JSON Schemas: made from types, sent to models, checked against what models write.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde_json::Value;

use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::panics::caught;
use crate::text::{MAX_QUOTED, excerpt_of};
use crate::wire::WireCell;

mod check;
mod outline;
mod weight;

/// The most violations that a model is told at once.
const MAX_VIOLATIONS: usize = 10;

/// The most bytes of a value that a violation quotes, and the most that it has itself. All of one
/// value have [`MAX_QUOTED`] together.
const MAX_INSTANCE: usize = 200;
const MAX_VIOLATION: usize = 500;

/// The most that a value may weigh against a schema that refers to itself, and the most at which
/// it is told what is wrong with it: that takes longer, and room for each thing that is.
const MAX_WEIGHT: u64 = 10_000_000;
const MAX_WEIGHT_TOLD: u64 = 100_000;

/// A JSON Schema, compiled. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    text: Json,
    validator: jsonschema::Validator,
    /// Whether it refers to itself.
    recursive: bool,
    wire: WireCell,
}

impl Schema {
    /// The schema of a type, as serde reads it.
    ///
    /// # Errors
    /// [`ErrorCode::ToolInvalid`] if the type's schema cannot be compiled, or making it panics.
    pub fn of<T: JsonSchema>() -> Result<Self> {
        let schema = caught("the JSON schema of a type", || schemars::schema_for!(T));
        let schema =
            schema.map_err(|panic| Error::new(ErrorCode::ToolInvalid, panic.to_string()))?;
        let mut value = schema.to_value();
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
    /// [`ErrorCode::ToolInvalid`] if it is not a schema, refers to something outside of itself or
    /// otherwise than as `#/…`, leads back to itself without going into the value, is nested more
    /// than 64 levels deep, or holds more than 10 000 schemas if each reference counts as what it
    /// refers to.
    pub fn from_value(value: Value) -> Result<Self> {
        let unusable = |problem: &dyn fmt::Display| {
            Error::new(ErrorCode::ToolInvalid, format!("not a usable JSON Schema: {problem}"))
        };
        let recursive = check::check(&value).map_err(|problem| unusable(&problem))?;
        let validator = jsonschema::validator_for(&value).map_err(|error| unusable(&error))?;
        let text = Json::from(value.clone());
        let wire = WireCell::default();
        Ok(Self(Arc::new(Inner { value, text, validator, recursive, wire })))
    }

    /// Checks a value.
    ///
    /// Against a schema that refers to itself this can be work that doubles with each level of the
    /// value. A value that could meet more than 10 million schemas is refused unchecked; of one that
    /// does not fit and could meet more than 100 000, only that is told.
    ///
    /// # Errors
    /// What is wrong with it, one sentence each, at most ten, and at most [`MAX_QUOTED`] bytes
    /// together: for a model to read.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<String>> {
        self.violations(value, describe)
    }

    /// Says where a value does not fit, what kind of value is there and which keyword it fails, and nothing
    /// of the value itself: for errors, which are logged and recorded. `None` if it fits. Members that the
    /// schema does not name are written as `*`.
    #[must_use]
    pub fn outline(&self, value: &Value) -> Option<String> {
        let violations = self.violations(value, |error| outline::of(error, &self.0.value));
        violations.err().map(|violations| violations.join("; "))
    }

    fn violations(
        &self,
        value: &Value,
        describe: impl Fn(&jsonschema::ValidationError<'_>) -> String,
    ) -> Result<(), Vec<String>> {
        let weight = if self.0.recursive { weight::weigh(&self.0.value, value) } else { 0 };
        if weight > MAX_WEIGHT {
            let told = "the value is too large or nested too deeply to be checked against a schema \
                        that refers to itself; make it smaller and flatter";
            return Err(vec![told.to_owned()]);
        }
        if self.0.validator.is_valid(value) {
            return Ok(());
        }
        if weight > MAX_WEIGHT_TOLD {
            let told = "the value does not fit the schema, and is too large or nested too deeply \
                        to tell where";
            return Err(vec![told.to_owned()]);
        }
        let mut violations = Vec::new();
        let mut room = MAX_QUOTED;
        for error in self.0.validator.iter_errors(value).take(MAX_VIOLATIONS) {
            let violation = describe(&error);
            // The first has room.
            let Some(left) = room.checked_sub(violation.len()) else { break };
            room = left;
            violations.push(violation);
        }
        Err(violations)
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

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.0.text.text())
    }
}

#[cfg(test)]
mod tests;
