//! JSON text that is validated once and then shared, without being parsed and written again.

mod check;
pub(crate) mod misfit;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The maximum nesting depth of arrays and objects. A log can be read back up to 127 levels,
/// including the envelope of an event.
pub const MAX_DEPTH: usize = 100;

/// A JSON value as a single line of text. Cheap to clone.
///
/// [`parse`](Self::parse) and [`from_serialize`](Self::from_serialize) accept only text that
/// [`to_value`](Self::to_value) can read.
///
/// # Examples
///
/// ```
/// use helix_agents_core::json::Json;
///
/// let json = Json::parse(r#"{"city":"Graz"}"#)?;
/// assert_eq!(json.to_value()["city"], "Graz");
/// assert!(Json::parse("1e400").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Parses JSON text.
    ///
    /// # Errors
    /// Returns the parser's error if the text is not JSON, or if it cannot be read back: an
    /// unpaired surrogate, a number out of the range of a float, more than [`MAX_DEPTH`] levels.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        check::reads_back(text)?;
        if text.contains(['\n', '\r']) {
            // Readers of the log rely on one line per value.
            return Self::from_serialize(&serde_json::from_str::<Value>(text)?);
        }
        Ok(Self(serde_json::from_str::<Box<RawValue>>(text.trim())?.into()))
    }

    /// Serializes a value as JSON.
    ///
    /// # Errors
    /// Returns the serializer's error, for instance for a map whose keys are not strings. If the
    /// text cannot be read back, as for [`parse`](Self::parse).
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        let raw = serde_json::value::to_raw_value(value)?;
        check::reads_back(raw.get())?;
        Ok(Self(raw.into()))
    }

    /// Returns an object without members.
    #[must_use]
    pub fn empty_object() -> Self {
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_default().into())
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the value as a tree.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or(Value::Null)
    }

    /// Deserializes the value.
    ///
    /// # Errors
    /// Returns the deserializer's error if the value does not fit the type.
    pub fn to_typed<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.text())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(RawValue::from_string(value.to_string()).unwrap_or_default().into())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.to_value() == other.to_value()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests;
