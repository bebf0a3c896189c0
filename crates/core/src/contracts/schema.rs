//! JSON Schemas: generated from types, sent to models, and used to validate what models write.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde_json::Value;

use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::panics::caught;
use crate::text::MAX_QUOTED;
use crate::wire::WireCell;

mod check;
mod validator;
mod weight;

use validator::Validator;

/// The maximum number of violations reported to a model. All violations of one value are limited to
/// [`MAX_QUOTED`] bytes together.
const MAX_VIOLATIONS: usize = 10;

/// The maximum weight of a value that is validated against a recursive schema.
const MAX_WEIGHT: u64 = 10_000_000;
/// The maximum weight of a value whose violations are listed, which takes more time and memory.
const MAX_WEIGHT_LISTED: u64 = 100_000;

/// A compiled JSON Schema. Cheap to clone.
///
/// Schemas can only be created if the crate's feature `json-schema` is enabled. The crates that
/// define and run agents enable it.
///
/// # Examples
///
/// ```
/// use helix_agents_core::schema::Schema;
/// use serde_json::json;
///
/// let schema = Schema::from_value(json!({"type": "object", "required": ["city"]}))?;
/// assert!(schema.validate(&json!({"city": "Graz"})).is_ok());
/// assert!(schema.validate(&json!({})).is_err());
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    text: Json,
    validator: Validator,
    /// Whether the schema is recursive.
    recursive: bool,
    wire: WireCell,
}

impl Schema {
    /// Creates the schema of a type, as serde deserializes it.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ToolInvalid`] if the type's schema cannot be compiled, or if generating
    /// it panics.
    pub fn of<T: JsonSchema>() -> Result<Self> {
        let schema = caught("the JSON schema of a type", || schemars::schema_for!(T));
        let schema =
            schema.map_err(|panic| Error::new(ErrorCode::ToolInvalid, panic.to_string()))?;
        let mut value = schema.to_value();
        if let Value::Object(members) = &mut value {
            // Useless for a model, and some strict providers reject it.
            members.remove("$schema");
            members.remove("title");
        }
        Self::from_value(value)
    }

    /// Creates a schema from JSON.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ToolInvalid`] if the crate's feature `json-schema` is disabled; if the
    /// value is not a schema; if it refers to another document, or to anything but `#` or `#/…`; if
    /// it contains `$id`, `$anchor` or a dynamic reference below its root; if a reference cycle
    /// does not descend into the value; if it is nested more than 64 levels deep; or if it contains
    /// more than 10 000 schemas after expanding all references.
    pub fn from_value(value: Value) -> Result<Self> {
        let unusable = |problem: &dyn fmt::Display| {
            Error::new(ErrorCode::ToolInvalid, format!("not a usable JSON Schema: {problem}"))
        };
        let recursive = check::check(&value).map_err(|problem| unusable(&problem))?;
        let validator = Validator::compile(&value).map_err(|problem| unusable(&problem))?;
        let text = Json::from(value.clone());
        let wire = WireCell::default();
        Ok(Self(Arc::new(Inner { value, text, validator, recursive, wire })))
    }

    /// Returns `false` if the `type` of the schema excludes objects.
    pub(crate) fn may_be_object(&self) -> bool {
        match self.0.value.get("type") {
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            _ => true,
        }
    }

    /// Validates a value.
    ///
    /// Validation against a recursive schema can take time that doubles with each level of the
    /// value. A value that may require more than 10 million schema checks is rejected without
    /// validation. If it may require more than 100 000 and does not fit, the violations are not
    /// listed.
    ///
    /// # Errors
    /// Returns the violations, one sentence each, at most ten and at most [`MAX_QUOTED`] bytes
    /// together, for the model.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<String>> {
        self.check(value, |validator| validator.violations(value))
    }

    /// Describes a violation for errors that are logged and recorded: the place, the kind of the
    /// value there and the failed keyword, without any content of the value. Returns `None` if the
    /// value fits. Members that the schema does not name are written as `*`.
    #[must_use]
    pub fn outline(&self, value: &Value) -> Option<String> {
        let outlines =
            self.check(value, |validator| validator.outlines(&self.0.value, value)).err();
        outlines.map(|outlines| outlines.join("; "))
    }

    /// Validates a value within the limits, and lists its violations in the form of `list`.
    fn check<'a, I: Iterator<Item = String>>(
        &'a self,
        value: &'a Value,
        list: impl FnOnce(&'a Validator) -> I,
    ) -> Result<(), Vec<String>> {
        let weight = if self.0.recursive { weight::weigh(&self.0.value, value) } else { 0 };
        if weight > MAX_WEIGHT {
            let violation = "the value is too large or nested too deeply to be validated against a \
                        recursive schema; make it smaller and flatter";
            return Err(vec![violation.to_owned()]);
        }
        if self.0.validator.is_valid(value) {
            return Ok(());
        }
        if weight > MAX_WEIGHT_LISTED {
            let violation = "the value does not fit the schema, and is too large or nested too deeply \
                        to list the violations";
            return Err(vec![violation.to_owned()]);
        }
        let mut violations = Vec::new();
        let mut room = MAX_QUOTED;
        for violation in list(&self.0.validator).take(MAX_VIOLATIONS) {
            // The first violation always fits.
            let Some(left) = room.checked_sub(violation.len()) else { break };
            room = left;
            violations.push(violation);
        }
        Err(violations)
    }

    /// Returns the schema as a JSON value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Returns the schema encoded as `encoding`, for native structured output. The first call runs
    /// `encode` and caches the bytes. Calls with another encoding run `encode` each time.
    pub fn encoded(
        &self,
        encoding: &'static str,
        encode: impl Fn(&Value, &mut Vec<u8>),
    ) -> Cow<'_, [u8]> {
        self.0.wire.get(encoding, |bytes| encode(&self.0.value, bytes))
    }

    /// Returns the schema as JSON text.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.0.text
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.0.text.text())
    }
}

#[cfg(test)]
mod tests;
