//! JSON text that is checked once and then shared, not parsed and printed again at every hand-over.

mod check;
pub(crate) mod misfit;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The most arrays and objects inside of each other that a value may have. A log cannot be read back
/// beyond 127 levels, the envelope of an event included.
pub const MAX_DEPTH: usize = 100;

/// One JSON value as text on one line. Cheap to clone.
///
/// [`parse`](Self::parse) and [`from_serialize`](Self::from_serialize) accept only text that
/// [`to_value`](Self::to_value) can read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Checks text that should be JSON.
    ///
    /// # Errors
    /// The parser's, if it is not, or if it cannot be read back: a surrogate without its pair, a number
    /// beyond the range of a float, more than [`MAX_DEPTH`] levels.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        check::reads_back(text)?;
        if text.contains(['\n', '\r']) {
            // One line each is what the log's readers rely on.
            return Self::from_serialize(&serde_json::from_str::<Value>(text)?);
        }
        Ok(Self(serde_json::from_str::<Box<RawValue>>(text.trim())?.into()))
    }

    /// The JSON form of a value.
    ///
    /// # Errors
    /// The serializer's: a map with keys that are no strings, or the value's own. As
    /// [`parse`](Self::parse), if the text cannot be read back.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        let raw = serde_json::value::to_raw_value(value)?;
        check::reads_back(raw.get())?;
        Ok(Self(raw.into()))
    }

    /// An object without members.
    #[must_use]
    pub fn empty_object() -> Self {
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_default().into())
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The value as a tree.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or(Value::Null)
    }

    /// The value as a type of the caller's.
    ///
    /// # Errors
    /// The deserializer's, if it does not fit.
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
